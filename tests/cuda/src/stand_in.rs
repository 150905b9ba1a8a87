//! The stand-in driver, loaded in the place of a real one, and what a test may ask of it.
#![expect(
    unsafe_code,
    reason = "a library's functions are taken from it by name"
)]

use std::env;
use std::fs;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_stand_in::{Code, Fault, Live, Record};
use libloading::Library;

/// The names under which programs look for the driver, in the order in which they do.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// The stand-in for one test: others that ask for it wait until this is dropped.
///
/// It begins with an empty log and no wishes, and leaves none behind.
#[derive(Debug)]
pub struct StandIn {
    functions: &'static Functions,
    _alone: MutexGuard<'static, ()>,
}

/// The functions that the library has for tests.
#[derive(Debug)]
struct Functions {
    log: extern "C" fn(u64, &mut MaybeUninit<Record>) -> bool,
    clear_log: extern "C" fn(),
    live: extern "C" fn(&mut MaybeUninit<Live>),
    hold_copies: extern "C" fn(bool),
    delay_events: extern "C" fn(u64),
    fail: extern "C" fn(&Fault) -> bool,
    fail_no_more: extern "C" fn(),
}

impl StandIn {
    /// Puts the stand-in into the place of the driver, if this process did not do so before, and
    /// keeps other tests out. To be called before anything that asks for a CUDA device.
    ///
    /// # Panics
    ///
    /// When the library is not beside this test, or the process loaded a driver before.
    #[must_use]
    pub fn alone() -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let stand_in = Self {
            functions: FUNCTIONS.get_or_init(Functions::load),
            _alone: alone,
        };
        stand_in.forget_wishes();
        stand_in.clear_log();
        stand_in
    }

    /// Every call since the test began or the log was cleared, in the order in which they began.
    ///
    /// # Panics
    ///
    /// When there were more than the log holds: clear it in between.
    #[must_use]
    pub fn log(&self) -> Vec<Record> {
        assert_eq!(
            self.live().lost,
            0,
            "the log of the stand-in driver is full"
        );
        (0..)
            .map_while(|position| self.functions.record(position))
            .collect()
    }

    /// The calls of one function among them.
    #[must_use]
    pub fn calls(&self, name: &str) -> Vec<Record> {
        let mut calls = self.log();
        calls.retain(|call| call.name() == name);
        calls
    }

    /// The copies from the host to a device among them.
    #[must_use]
    pub fn uploads(&self) -> Vec<Record> {
        let mut calls = self.log();
        calls.retain(Record::is_upload);
        calls
    }

    /// Forgets the calls so far.
    pub fn clear_log(&self) {
        (self.functions.clear_log)();
    }

    /// What is alive in the driver: allocations, streams and events.
    #[must_use]
    pub fn live(&self) -> Live {
        let mut live = MaybeUninit::new(Live::default());
        (self.functions.live)(&mut live);
        // SAFETY: it was initialised above, and all bits are numbers.
        unsafe { live.assume_init() }
    }

    /// Holds copies back until something waits for them: what arrives is what lies at their source
    /// by then.
    pub fn hold_copies(&self) {
        (self.functions.hold_copies)(true);
    }

    /// Does the copies that were held, and holds none from now on.
    pub fn release_copies(&self) {
        (self.functions.hold_copies)(false);
    }

    /// Lets each copy that is asked for from now on take this long, as far as the events behind it tell.
    pub fn delay_events(&self, milliseconds: u64) {
        (self.functions.delay_events)(milliseconds);
    }

    /// Lets the `nth` call of a function from now on fail; 1 is the next.
    ///
    /// # Panics
    ///
    /// When `nth` is 0.
    pub fn fail(&self, name: &str, nth: u64, code: Code) {
        self.ask_to_fail(&Fault::new(name, nth, 1, code));
    }

    /// Lets every call of a function fail from now on.
    pub fn fail_always(&self, name: &str, code: Code) {
        self.ask_to_fail(&Fault::new(name, 1, u64::MAX, code));
    }

    /// Lets no call fail any more.
    pub fn fail_no_more(&self) {
        (self.functions.fail_no_more)();
    }

    fn ask_to_fail(&self, fault: &Fault) {
        assert!(
            (self.functions.fail)(fault),
            "the stand-in cannot do that: {fault:?}"
        );
    }

    fn forget_wishes(&self) {
        self.fail_no_more();
        self.delay_events(0);
        self.release_copies();
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.forget_wishes();
    }
}

impl Functions {
    fn load() -> Self {
        let path = beside_this_test();
        // SAFETY: the stand-in's library does nothing when it is loaded.
        let library = unsafe { Library::new(&path) };
        let library = library.unwrap_or_else(|why| {
            panic!(
                "the stand-in driver is not beside the test at {}: {why}",
                path.display()
            )
        });
        let functions = Self::of(Box::leak(Box::new(library)));
        for name in NAMES {
            assert!(
                functions.are_in(name),
                "{name} is not the stand-in: something loaded a CUDA driver before"
            );
        }
        functions
    }

    fn of(library: &'static Library) -> Self {
        /// Takes a function from the library; its type is that of the field.
        macro_rules! take {
            ($name:literal) => {{
                // SAFETY: the library is the stand-in of this very workspace, whose `control` has
                // the function with this type.
                let function = unsafe { library.get($name) };
                *function.expect("the stand-in has the function")
            }};
        }
        Self {
            log: take!(b"stand_in_log"),
            clear_log: take!(b"stand_in_clear_log"),
            live: take!(b"stand_in_live"),
            hold_copies: take!(b"stand_in_hold_copies"),
            delay_events: take!(b"stand_in_delay_events"),
            fail: take!(b"stand_in_fail"),
            fail_no_more: take!(b"stand_in_fail_no_more"),
        }
    }

    /// Whether a program that asks for this library gets the stand-in, or nothing.
    fn are_in(&self, name: &str) -> bool {
        // SAFETY: what is loaded already does nothing again; a real driver is loaded only to be found out.
        let Ok(library) = (unsafe { Library::new(name) }) else {
            return true;
        };
        // SAFETY: only compared, never called.
        let found = unsafe { library.get::<extern "C" fn()>(b"stand_in_clear_log") };
        found.is_ok_and(|found| std::ptr::fn_addr_eq(*found, self.clear_log))
    }

    fn record(&self, position: u64) -> Option<Record> {
        let mut record = MaybeUninit::new(Record::default());
        let found = (self.log)(position, &mut record);
        // SAFETY: it was initialised above, and all bits are numbers.
        found.then(|| unsafe { record.assume_init() })
    }
}

/// Cargo puts the libraries that a test depends on beside it.
fn beside_this_test() -> PathBuf {
    let test = env::current_exe().expect("a process knows its program");
    test.with_file_name("libcuda_stand_in.so")
}

/// The name of a thread of this process, by the number that records have.
#[must_use]
pub fn thread_name(number: u64) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/self/task/{number}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

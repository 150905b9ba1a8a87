//! Calls that fail because a test asked for it.

use crate::code::Code;
use crate::protocol::Fault;

/// What was asked for and is not used up.
#[derive(Debug)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Takes a wish; whether it can be fulfilled.
    pub(crate) fn add(&mut self, fault: Fault) -> bool {
        let sound = fault.nth > 0 && fault.times > 0 && Code::of(fault.code).is_some();
        if sound {
            self.0.push(fault);
        }
        sound
    }

    /// What a call of `name` that begins now must return.
    ///
    /// # Errors
    ///
    /// With the code that was asked for, when it is this call's turn.
    pub(crate) fn check(&mut self, name: &str) -> Result<(), Code> {
        let mut failure = None;
        for fault in self.0.iter_mut().filter(|fault| fault.name() == name) {
            if fault.nth > 1 {
                fault.nth -= 1;
            } else {
                fault.times -= 1;
                failure = failure.or(Code::of(fault.code));
            }
        }
        self.0.retain(|fault| fault.times > 0);
        failure.map_or(Ok(()), Err)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_of_a_name_fails_and_no_other() {
        let mut faults = Faults::new();
        assert!(faults.add(Fault::new("b", 2, 2, Code::OutOfMemory)));
        let outcomes = ["b", "a", "b", "b", "b"].map(|name| faults.check(name));
        let failed = Err(Code::OutOfMemory);
        assert_eq!(outcomes, [Ok(()), Ok(()), failed, failed, Ok(())]);
    }

    #[test]
    fn a_code_that_is_none_is_refused() {
        let fault = Fault {
            code: 77,
            ..Fault::new("a", 1, 1, Code::Unknown)
        };
        assert!(!Faults::new().add(fault));
        assert!(!Faults::new().add(Fault::new("a", 0, 1, Code::Unknown)));
    }
}

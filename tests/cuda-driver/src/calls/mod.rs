//! The driver's functions, each a thin edge: name and numbers into a record, the rest to the driver.
//!
//! Handles and device addresses are plain numbers here, which pass like the pointers that the C
//! header has for them; a pointer to write a result through is an optional reference to memory that
//! may hold nothing yet.

mod copy;
mod device;
mod memory;
mod stream;

#[cfg(test)]
mod tests {
    #![expect(unsafe_code, reason = "the functions are called as a program would")]

    use std::ffi::{c_char, c_int, c_uint};

    use crate::code::Code;
    use crate::control::tests::{calls, live};

    unsafe extern "C" {
        safe fn cuInit(flags: c_uint) -> Code;
        safe fn cuDevicePrimaryCtxRetain(context: &mut u64, of: c_int) -> Code;
        safe fn cuCtxSetCurrent(context: u64) -> Code;
        safe fn cuStreamCreate(stream: &mut u64, flags: c_uint) -> Code;
        safe fn cuStreamDestroy_v2(stream: u64) -> Code;
        safe fn cuStreamSynchronize(stream: u64) -> Code;
        safe fn cuMemAlloc_v2(address: &mut u64, bytes: usize) -> Code;
        safe fn cuMemFree_v2(address: u64) -> Code;
        fn cuDeviceGetName(name: *mut c_char, room: c_int, of: c_int) -> Code;
        fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: u64) -> Code;
        fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: u64) -> Code;
    }

    /// What a function writes through its pointer.
    fn made(make: impl FnOnce(&mut u64) -> Code) -> u64 {
        let mut value = 0;
        assert_eq!(make(&mut value), Code::Success);
        value
    }

    #[test]
    fn bytes_go_up_and_come_back_and_every_call_is_recorded() {
        let (sent, mut back) = ([7_u8, 8, 9], [0_u8; 3]);
        assert_eq!(cuInit(0), Code::Success);
        let context = made(|out| cuDevicePrimaryCtxRetain(out, 1));
        assert_eq!(cuCtxSetCurrent(context), Code::Success);
        let stream = made(|out| cuStreamCreate(out, 0));
        let memory = made(|out| cuMemAlloc_v2(out, 3));
        assert_eq!(live().device[1].bytes, 3);
        // SAFETY: three bytes of a local that outlives the call.
        let up = unsafe { cuMemcpyHtoDAsync_v2(memory, sent.as_ptr(), 3, stream) };
        // SAFETY: the same.
        let down = unsafe { cuMemcpyDtoHAsync_v2(back.as_mut_ptr(), memory, 3, stream) };
        assert_eq!((up, down), (Code::Success, Code::Success));
        assert_eq!(cuStreamSynchronize(stream), Code::Success);
        assert_eq!(cuMemFree_v2(memory), Code::Success);
        assert_eq!(cuMemFree_v2(memory), Code::InvalidValue);
        assert_eq!(cuStreamDestroy_v2(stream), Code::Success);
        assert_eq!((back, live().device[1].bytes), (sent, 0));
        let calls = calls();
        let upload = calls
            .iter()
            .find(|call| call.is_upload())
            .expect("it was recorded");
        let from = sent.as_ptr().expose_provenance() as u64;
        assert_eq!(
            (upload.from, upload.bytes, upload.pinned, upload.device),
            (from, 3, 0, 1)
        );
        assert!(upload.thread > 0 && upload.took > 0);
        let failed: Vec<_> = calls.iter().filter(|call| call.code != 0).collect();
        assert!(matches!(failed[..], [free] if free.name() == "cuMemFree_v2"));
    }

    #[test]
    fn a_name_is_cut_to_the_room_there_is() {
        let mut room: [c_char; 6] = [9; 6];
        // SAFETY: there are five bytes at the pointer, and one more.
        let code = unsafe { cuDeviceGetName(room.as_mut_ptr(), 5, 0) };
        assert_eq!(code, Code::Success);
        let text: Vec<u8> = room.iter().map(|byte| byte.cast_unsigned()).collect();
        assert_eq!(text, b"stan\0\x09");
    }
}

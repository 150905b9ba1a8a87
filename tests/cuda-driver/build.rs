//! Gives the library the name under which programs ask for the CUDA driver.
//!
//! The loader takes a library that is loaded already for one that is asked for by its `SONAME`: after
//! a test has loaded the stand-in by its path, whoever asks for `libcuda.so` gets the stand-in.

fn main() {
    let mut out = std::io::stdout().lock();
    let line =
        "cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so\ncargo::rerun-if-changed=build.rs";
    std::io::Write::write_all(&mut out, line.as_bytes()).expect("cargo listens");
}

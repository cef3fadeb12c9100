//! Gives the shared library a name for the dynamic linker. Before version 1, each minor version may
//! change the functions.

fn main() {
    let version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}"));
    let (Ok(major), Ok(minor)) = (version("MAJOR"), version("MINOR")) else { return };
    let number = if major == "0" { format!("0.{minor}") } else { major };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpolypath.so.{number}");
    // Its thread and its handlers of fork and exit stay when dlclose is called.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}

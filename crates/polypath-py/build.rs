//! Puts a fingerprint of the simulator's and the protocol's sources into `POLYPATH_SOURCES`, which
//! distinguishes results of different engines with the same version number.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    pyo3_build_config::add_extension_module_link_args();
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut sources = Vec::new();
    for name in ["polypath-proto", "polypath-sim"] {
        let folder = here.join("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &mut sources)?;
    }
    sources.sort();
    let mut hash = Fnv::default();
    for source in sources {
        hash.add(&fs::read(source)?);
    }
    println!("cargo::rustc-env=POLYPATH_SOURCES={:016x}", hash.0);
    Ok(())
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Tests do not affect the behavior of the engine.
        if path.is_dir() && path.file_name().is_some_and(|name| name != "tests") {
            collect(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            sources.push(path);
        }
    }
    Ok(())
}

/// FNV-1a: the same on every machine and with every compiler.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

//! See `src/addresses.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    polypath_fuzz::addresses::converse(input);
});

//! See `shared/conversation.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../shared/conversation.rs"]
mod conversation;

fuzz_target!(|input: &[u8]| {
    conversation::converse(input);
});

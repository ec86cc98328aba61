//! `cargo fuzz run nodes --features libfuzzer`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::nodes(data));

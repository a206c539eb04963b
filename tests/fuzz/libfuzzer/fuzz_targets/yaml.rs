//! `fuzz::yaml_streams` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::yaml_streams(data));

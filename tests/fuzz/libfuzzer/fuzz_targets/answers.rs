//! `fuzz::answers_of_tools` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::answers_of_tools(data));

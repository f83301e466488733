#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flare_http::fuzzing::head(data));

#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| esker::fuzzing::run("point_index", data));

//! What the linker is told on each system.

fn main() {
    napi_build::setup();
}

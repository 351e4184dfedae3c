//! Benchmarks of embedded stores.

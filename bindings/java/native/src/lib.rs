//! The native part of the Java library; `src/main/java` is what programs use.
//!
//! Each function that Java calls is one crossing, and catches panics. Bytes are copied in and out: no array of Java's is held
//! while the store works, so that a collection never waits for it. What Java holds are addresses of boxes; it frees a box when
//! nothing can call with it any more (`Reader.java` and `Gate.java` say how), so that there is nothing to count or to look up
//! here.

mod batch;
mod boxes;
mod buffer;
mod cursor;
mod env;
mod failure;
mod keyspace;
mod load;
mod reader;
mod report;
mod store;

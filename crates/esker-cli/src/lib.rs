//! The `esker` command.
pub mod encoding;
pub mod formats;

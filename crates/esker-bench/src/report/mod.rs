//! The result, for people and for programs.

mod json;
mod table;

pub use json::write_json_lines;
pub use table::table;

//! The result, for people and for programs.

mod bars;
mod format;
mod input;
mod json;
mod latency;
mod layout;
mod lines;
mod model;
mod palette;
mod published;
mod scale;
mod svg;
mod table;
mod text;

pub use json::write_json_lines;
pub use table::table;

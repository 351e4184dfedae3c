//! Measures one of the engines of this crate; started by `esker bench`.

use esker_bench::external;
use esker_bench_engines::{bf_tree, fjall, libmdbx, redb, sled};
use std::process::ExitCode;

fn main() -> ExitCode {
    external::main(|name, visit| match name {
        "redb" => visit.engine::<redb::Redb>(),
        "fjall" => visit.engine::<fjall::Fjall>(),
        "sled" => visit.engine::<sled::Sled>(),
        "bf-tree" => visit.engine::<bf_tree::BfTree>(),
        "libmdbx" => visit.engine::<libmdbx::Mdbx>(),
        _ => visit.unknown(),
    })
}

//! The store against a sorted map: the same operations on both must give the same answers, under
//! any options, through flushes, merges, reopening, kills and checkpoints.
//!
//! `ESKER_SEED=n` runs one seed again, `ESKER_OPS=n` sets the number of operations (30,000, or 100,000 in
//! all; one is a write, a batch, a scan, a reopening; the calls within are counted and printed),
//! `ESKER_TRACE=1` prints each of them, `ESKER_KEEP=1` leaves the files of a failure.

#[path = "../common/mod.rs"]
mod common;
mod life;
mod reader;
mod reads;
mod world;
mod writes;

use common::model::Order;
use common::{quick_or_full, seed};
use world::World;

/// Operations on one store, before another with other options takes its place.
const OPS_PER_STORE: u64 = 2_500;

#[test]
fn bytewise_keyspaces_equal_sorted_maps() {
    run("bytewise", &[Order::Bytewise]);
}

#[test]
fn reverse_keyspaces_equal_sorted_maps() {
    run("reverse", &[Order::Reverse]);
}

#[test]
fn keyspaces_under_a_comparator_equal_sorted_maps() {
    run("comparator", &[Order::NoCase]);
}

#[test]
fn keyspaces_of_all_orders_in_one_store_equal_sorted_maps() {
    run("mixed", &[Order::Bytewise, Order::Reverse, Order::NoCase]);
}

fn run(test: &str, orders: &[Order]) {
    let seed = seed(test);
    let mut left = common::number("ESKER_OPS").unwrap_or(quick_or_full(30_000, 100_000)) / 4;
    let (mut store, mut steps, mut calls) = (0, 0, 0);
    while left > 0 {
        let ops = left.min(OPS_PER_STORE);
        let mut world = World::new(seed.wrapping_add(store << 32), orders);
        for _ in 0..ops {
            world.step();
        }
        calls += world.finish();
        left -= ops;
        steps += ops;
        store += 1;
    }
    println!("{test}: {store} stores, {steps} operations, {calls} calls");
}

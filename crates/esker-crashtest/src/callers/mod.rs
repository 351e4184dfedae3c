//! The campaign of adversarial callers: whatever a program may do to the store through the public
//! interface, at both ends of every range, at the worst moment.
//!
//! A *round* draws a scenario and its numbers from the seed and plays it in a process of its own, so
//! that a hang can be ended, a panic in any thread is seen, and memory is measured from nothing. What
//! the store must hold is known outside of it: in another process where processes are killed, in the
//! memory of whoever called it elsewhere. A round ends with the store opened again, verified,
//! compared in full, and measured.

mod api;
mod bounds;
mod draw;
mod model;
mod ops;
mod orders;
mod panics;
mod plan;
mod round;
mod scenarios;
mod settings;
mod tally;
mod writer;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plan::Plan;
use tally::Tally;

/// The campaign, or a part of it that this program runs as another process.
pub fn main(args: &[String]) -> Result<(), String> {
    match args.split_first() {
        Some((first, rest)) if first == "--round-here" => round::here(rest),
        Some((first, rest)) if first == "--part" => round::part(rest),
        _ => campaign(&Plan::parse(args)?),
    }
}

fn campaign(plan: &Plan) -> Result<(), String> {
    fs::create_dir_all(&plan.dir).map_err(|e| format!("{}: {e}", plan.dir.display()))?;
    let start = Instant::now();
    let (mut tally, mut failed) = (Tally::default(), 0);
    let mut number = plan.round.unwrap_or(0);
    loop {
        match play(plan, number, &mut tally) {
            Ok(()) => tally.rounds += 1,
            Err(what) => {
                (tally.rounds, failed) = (tally.rounds + 1, failed + 1);
                println!("FAILED {}\n{what}", plan.again(number));
            }
        }
        number += 1;
        let enough = plan.rounds.is_some_and(|n| tally.rounds >= n);
        if plan.round.is_some() || enough || start.elapsed() > plan.time {
            break;
        }
    }
    println!("{tally}, {failed} failures; seed {}, {:.0?}", plan.seed, start.elapsed());
    if failed > 0 {
        return Err(format!("what the rounds that failed left is in {}", plan.dir.display()));
    }
    drop(fs::remove_dir(&plan.dir));
    Ok(())
}

/// One round, in a process that is ended when it takes too long.
fn play(plan: &Plan, number: u64, tally: &mut Tally) -> Result<(), String> {
    let start = Instant::now();
    println!("round {number}: {}, seed {}", plan.scenario(number), plan.round_seed(number));
    let dir = plan.dir.join(format!("round-{number}"));
    drop(fs::remove_dir_all(&dir));
    fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    let (said, log) = (dir.join("counts"), dir.join("log"));
    let file = |path: &Path| fs::File::create(path).map_err(|e| e.to_string());
    let mut child = Command::new(std::env::current_exe().map_err(|e| e.to_string())?)
        .args(["callers", "--round-here", plan.scenario(number)])
        .arg(plan.round_seed(number).to_string())
        .arg(&dir)
        .stdin(Stdio::piped())
        .stdout(file(&said)?)
        .stderr(file(&log)?)
        .spawn()
        .map_err(|e| format!("starting a round: {e}"))?;
    let ended = watch(&mut child, plan.limit);
    tally.add(&fs::read_to_string(&said).unwrap_or_default());
    match ended {
        Ok(()) => {
            println!("  sound, {:.1?}", start.elapsed());
            fs::remove_dir_all(&dir).map_err(|e| format!("removing {}: {e}", dir.display()))
        }
        Err(how) => {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(40)..].join("\n  ");
            Err(format!("  {last}\n  {how} after {:.1?}", start.elapsed()))
        }
    }
}

/// Waits for the end of a round. One that hangs is killed, with the place where its threads stand.
fn watch(child: &mut Child, limit: Duration) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("ended with {status}")),
            None if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
            None => break,
        }
    }
    let threads = threads_of(child.id());
    drop(child.kill());
    drop(child.wait());
    Err(format!("hung: killed by the watchdog; its threads: {threads}"))
}

fn threads_of(process: u32) -> String {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return String::new() };
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default().trim().to_string();
    let of = |task: fs::DirEntry| {
        let dir = task.path();
        format!("{} ({})", text(&dir.join("comm")), text(&dir.join("wchan")))
    };
    tasks.flatten().map(of).collect::<Vec<_>>().join(", ")
}

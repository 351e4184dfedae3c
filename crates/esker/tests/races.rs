//! One writer: of many that open a store at once, in threads and in processes, one wins, and the
//! others are told. A kill frees what was won.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Barrier};

use esker::{Db, Error, Options};

const DIR: &str = "ESKER_RACE_DIR";

fn open(dir: &Path) -> Result<Db, Error> {
    Options::new().memory(1 << 20).segment_size(64 << 10).open(dir)
}

/// In memory where there is a file system for that: this is about locks.
fn root() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { tempfile::tempdir_in(shm).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// One test at a time: between fork and exec a new process holds what its parent has locked.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Not a test of its own: a process that opens and closes as it is told.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let mut held = None;
    for line in std::io::stdin().lines() {
        match line.unwrap().as_str() {
            "open" => match open(&PathBuf::from(&dir)) {
                Ok(db) => {
                    held = Some(db);
                    println!("answer won");
                }
                Err(Error::Locked { .. }) => println!("answer locked"),
                Err(e) => println!("answer {e}"),
            },
            _ => {
                if let Some(db) = held.take() {
                    db.put("last", std::process::id().to_be_bytes()).unwrap();
                    db.close().unwrap();
                }
                println!("answer closed");
            }
        }
    }
}

struct Rival {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Rival {
    fn new(dir: &Path) -> Rival {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Rival { process, said }
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "a process is gone");
            if let Some((_, answer)) = line.split_once("answer ") {
                return answer.trim().to_string();
            }
        }
    }
}

#[test]
fn of_processes_that_open_at_once_one_wins_and_a_kill_frees_it() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let races = common::number("ESKER_RACES").unwrap_or(common::quick_or_full(300, 1000)) * 2 / 5;
    let mut rivals: Vec<Rival> = (0..3).map(|_| Rival::new(&dir)).collect();
    let mut wins = [0; 3];
    for race in 0..races as usize {
        // Not always the same one first.
        for n in 0..3 {
            rivals[(race + n) % 3].tell("open");
        }
        let answers: Vec<String> = rivals.iter_mut().map(Rival::answer).collect();
        let won: Vec<usize> = (0..3).filter(|n| answers[*n] == "won").collect();
        assert!(won.len() == 1, "race {race}: {answers:?}");
        assert!(answers.iter().all(|a| a == "won" || a == "locked"), "race {race}: {answers:?}");
        let winner = won[0];
        wins[winner] += 1;
        if race % 10 == 9 {
            rivals[winner].process.kill().unwrap();
            rivals[winner].process.wait().unwrap();
            rivals[winner] = Rival::new(&dir);
        } else {
            rivals[winner].tell("close");
            assert_eq!(rivals[winner].answer(), "closed");
        }
    }
    println!("{races} races of processes, won {wins:?}");
    for mut rival in rivals {
        drop(rival.process.stdin.take());
        rival.process.wait().unwrap();
    }
    open(&dir).unwrap();
}

#[test]
fn of_threads_that_open_at_once_one_wins() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let races = common::number("ESKER_RACES").unwrap_or(common::quick_or_full(300, 1000)) * 3 / 5;
    let threads = 4;
    let barrier = Arc::new(Barrier::new(threads));
    let workers: Vec<_> = (0..threads)
        .map(|n| {
            let (dir, barrier) = (dir.clone(), Arc::clone(&barrier));
            std::thread::spawn(move || {
                // No assertion in here: the others would wait for this thread for ever.
                let (mut won, mut wrong) = (Vec::new(), Vec::new());
                for race in 0..races {
                    barrier.wait();
                    let opened = match n % 2 {
                        0 => open(&dir),
                        // By another path to the same directory.
                        _ => open(&dir.join("../db")),
                    };
                    let lost = matches!(opened, Err(Error::Locked { .. }));
                    // All have tried before anybody closes.
                    barrier.wait();
                    match opened {
                        Ok(db) => {
                            won.push(race);
                            wrong.extend(db.close().err().map(|e| format!("race {race}: {e}")));
                        }
                        Err(_) if lost => {}
                        Err(e) => wrong.push(format!("race {race}: {e}")),
                    }
                }
                (won, wrong)
            })
        })
        .collect();
    let mut won = Vec::new();
    for worker in workers {
        let (by_this_one, wrong) = worker.join().unwrap();
        assert_eq!(wrong, Vec::<String>::new());
        won.extend(by_this_one);
    }
    won.sort_unstable();
    assert!(won.into_iter().eq(0..races), "one winner for each race");
    println!("{races} races of threads");
}

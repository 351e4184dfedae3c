//! What a damaged store came to.

use serde::{Deserialize, Serialize};

use crate::process::Ending;
use crate::{Found, Judgement, Oracle};

/// What a damaged store did, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every answer was right.
    NoEffect,
    /// An error, and every answer beside it was right.
    Error,
    /// Writes were missing without an error by the call that had to find them, but some other call had
    /// one.
    LostWithError,
    /// Writes were missing, and no call said anything.
    LostInSilence,
    /// It did not end.
    Hang,
    /// It ended by a signal or a panic.
    Crash,
    /// A value or key was returned that nobody ever wrote.
    Wrong,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 7] = [
        Outcome::NoEffect,
        Outcome::Error,
        Outcome::LostWithError,
        Outcome::LostInSilence,
        Outcome::Hang,
        Outcome::Crash,
        Outcome::Wrong,
    ];

    /// As the head of a column.
    pub fn title(self) -> &'static str {
        match self {
            Outcome::NoEffect => "no effect",
            Outcome::Error => "error",
            Outcome::LostWithError => "writes lost, an error elsewhere",
            Outcome::LostInSilence => "writes lost in silence",
            Outcome::Hang => "hang",
            Outcome::Crash => "crash",
            Outcome::Wrong => "wrong value",
        }
    }

    /// Whether a user who looks at every error was still misled, or lost the process.
    pub fn is_bad(self) -> bool {
        self > Outcome::Error
    }

    /// From what the store answered and how the process that read it ended; also in words.
    pub fn of(oracle: &Oracle, found: &Found, ending: &Ending) -> (Outcome, String) {
        let (mut lost, mut wrong) = (Vec::new(), found.wrong.clone());
        for (call, answers) in &found.answers {
            for (key, is) in answers {
                match oracle.judge(*key, *is) {
                    Judgement::Right => {}
                    Judgement::Lost(text) => lost.push(format!("{call:?}: {text}")),
                    Judgement::Wrong(text) => wrong.push(format!("{call:?}: {text}")),
                }
            }
        }
        if let Some(text) = wrong.into_iter().next() {
            return (Outcome::Wrong, text);
        }
        match ending {
            Ending::Done => {}
            Ending::Hung => return (Outcome::Hang, "it did not end".to_string()),
            // The engine's own way to end a process (`exit`) is no answer either.
            Ending::Crashed(text) | Ending::Failed(text) => return (Outcome::Crash, text.clone()),
        }
        let first = lost.first().map(|first| format!("{} answers, the first: {first}", lost.len()));
        match (first, found.first_error.clone()) {
            (None, None) => (Outcome::NoEffect, String::new()),
            (None, Some(error)) => (Outcome::Error, error),
            (Some(lost), None) => (Outcome::LostInSilence, lost),
            (Some(lost), Some(error)) => {
                (Outcome::LostWithError, format!("{lost}; error: {error}"))
            }
        }
    }
}

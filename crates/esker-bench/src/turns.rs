//! Who is measured when: every case of every repetition with every engine, in an order that chance decides.

use crate::data::{Rng, mix};
use crate::plan::Case;
use crate::progress::Step;

/// The name under which the machine's limits are recorded.
pub const MACHINE: &str = "machine";

/// The cases by their numbers, each with all engines in shuffled order, another one each time: who comes first finds the machine
/// in another state than who comes last, and no engine is always the same one's successor. Equal seeds give equal orders.
pub fn steps(cases: &[&Case], engines: &[String], repetitions: u32, seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(mix(seed ^ 0x7012));
    let mut steps = Vec::new();
    for _ in 0..repetitions {
        for (number, case) in cases.iter().enumerate() {
            if case.id.is_machine() {
                steps.push((number, MACHINE.to_string()));
                continue;
            }
            let turn = shuffled(engines, &mut rng);
            steps.extend(turn.into_iter().map(|engine| (number, engine)));
        }
    }
    steps
}

/// All of them, every order as likely as any other.
fn shuffled(engines: &[String], rng: &mut Rng) -> Vec<String> {
    let mut turn = engines.to_vec();
    for last in (1..turn.len()).rev() {
        turn.swap(last, rng.below(last as u64 + 1) as usize);
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CaseId;

    fn engines() -> Vec<String> {
        ["a", "b", "c", "d", "e"].map(String::from).to_vec()
    }

    #[test]
    fn every_engine_has_its_turn_in_every_case_of_every_repetition() {
        let plan = crate::suites::tests::base().plan;
        let case = |id| Case { id, plan: plan.clone(), rows: Vec::new() };
        let cases = [case(CaseId::Machine), case(CaseId::FillSeq), case(CaseId::Reads)];
        let cases: Vec<&Case> = cases.iter().collect();
        let steps = steps(&cases, &engines(), 4, 301);
        assert_eq!(steps.len(), 4 * (1 + 5 + 5));
        let mut orders = Vec::new();
        for repetition in steps.chunks(11) {
            assert_eq!(repetition[0], (0, MACHINE.to_string()));
            for (number, turn) in [(1, &repetition[1..6]), (2, &repetition[6..])] {
                assert!(turn.iter().all(|step| step.0 == number));
                let mut names: Vec<String> = turn.iter().map(|step| step.1.clone()).collect();
                orders.push(names.clone());
                names.sort();
                assert_eq!(names, engines());
            }
        }
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 4, "{orders:?}");
        assert_eq!(steps, super::steps(&cases, &engines(), 4, 301), "a seed gives one order");
        assert_ne!(steps, super::steps(&cases, &engines(), 4, 302));
    }

    #[test]
    fn every_place_in_the_order_is_as_likely() {
        let mut rng = Rng::new(7);
        let mut places = [0; 5];
        for _ in 0..5000 {
            let turn = shuffled(&engines(), &mut rng);
            places[turn.iter().position(|e| e == "a").unwrap()] += 1;
        }
        assert!(places.iter().all(|n| (850..1150).contains(n)), "{places:?}");
    }
}

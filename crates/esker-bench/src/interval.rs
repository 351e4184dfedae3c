//! How sure a median is: an interval around it, and whether two medians can be told apart by theirs.

/// A width, as a part of the figure, from which on that is marked as unsure.
pub const WIDE: f64 = 0.2;
/// What is said of a row in which nobody can be called the first.
pub const ALIKE: &str = "cannot be told apart";
/// How likely the interval may be not to contain the median of all that could be measured, where there are values enough to
/// say so: from nine on. Fewer have the lowest and the highest, and six of these are as sure.
const OUTSIDE: f64 = 0.05;

/// Fewer values tell nothing of chance: the median of all that could be measured is outside of every second pair.
pub const FEWEST: usize = 3;
/// Figures of which one has no interval are as good as each other up to this many times: of pairs of draws of one engine in the
/// published results a third are further apart.
pub const NEAR: f64 = 1.1;

/// From where to where the median lies, by the order of the values alone: no assumption of how they are spread. `None` for
/// fewer than [`FEWEST`].
pub fn of_median(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < FEWEST {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = left_out(sorted.len());
    Some((sorted[cut], sorted[sorted.len() - 1 - cut]))
}

/// From the lowest to the highest: what is known of few values. `None` for none.
pub fn range(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().reduce(f64::max)?))
}

/// How many of `n` values lie outside of the interval at either end. As many are below the true median as a fair coin shows
/// heads in `n` throws.
fn left_out(n: usize) -> usize {
    let none = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let (mut exactly, mut at_most, mut cut) = (none, none, 0);
    while cut + 1 < n.div_ceil(2) {
        exactly *= (n - cut) as f64 / (cut + 1) as f64;
        at_most += exactly;
        if 2.0 * at_most > OUTSIDE {
            break;
        }
        cut += 1;
    }
    cut
}

/// Whether one of two is better beyond doubt: their intervals share nothing. What is below `least` counts as `least`.
pub fn apart(a: (f64, f64), b: (f64, f64), least: f64) -> bool {
    let (low, high) = (a.0.max(b.0), a.1.min(b.1));
    low.max(least) > high.max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_the_lowest_and_the_highest_and_many_leave_some_out() {
        let values = |n: usize| (1..=n).rev().map(|v| v as f64).collect::<Vec<_>>();
        assert_eq!(of_median(&values(1)), None);
        assert_eq!(of_median(&values(2)), None, "two may well lie on one side of the median");
        assert_eq!(of_median(&values(3)), Some((1.0, 3.0)));
        assert_eq!(of_median(&values(5)), Some((1.0, 5.0)));
        assert_eq!(of_median(&values(8)), Some((1.0, 8.0)));
        // The ranks that tables of the sign test have for 5 %.
        assert_eq!(of_median(&values(9)), Some((2.0, 8.0)));
        assert_eq!(of_median(&values(15)), Some((4.0, 12.0)));
        assert_eq!(of_median(&values(25)), Some((8.0, 18.0)));
    }

    #[test]
    fn what_overlaps_cannot_be_told_apart() {
        assert!(apart((1.0, 2.0), (2.1, 3.0), 0.0) && apart((2.1, 3.0), (1.0, 2.0), 0.0));
        assert!(!apart((1.0, 2.0), (2.0, 3.0), 0.0));
        assert!(!apart((1.0, 9.0), (2.0, 3.0), 0.0));
        // Both are too short to be noticed.
        assert!(!apart((40e-9, 50e-9), (1e-4, 9e-4), 1e-3));
        assert!(apart((40e-9, 50e-9), (1e-4, 9e-4), 0.0));
    }
}

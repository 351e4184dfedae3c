//! From values to places, and which values an axis names.

use crate::interval;

/// Ratios beyond this are shown on a logarithmic axis: on a linear one the small would vanish.
pub(crate) const LOG_BEYOND: f64 = 20.0;

/// An axis from `from` to `to`, mapped to 0..=1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub log: bool,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    /// From zero to the largest of some values.
    pub fn from_zero(values: &[f64]) -> Scale {
        let to = values.iter().copied().fold(0.0, f64::max);
        Scale { log: false, from: 0.0, to: if to > 0.0 { to } else { 1.0 } }
    }

    /// The axis of bars: from zero, or logarithmic from a power of ten below the smallest.
    pub fn for_bars(values: &[f64]) -> Scale {
        let linear = Scale::from_zero(values);
        let to = linear.to;
        let least = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        if !least.is_finite() || to / least <= LOG_BEYOND {
            return linear;
        }
        // Half a decade of bar for the smallest, or it could not be told from nothing.
        let from = 10f64.powf((least / 2.0).log10().floor());
        Scale { log: true, from, to }
    }

    /// A logarithmic axis over whole powers of ten.
    pub fn decades(values: impl Iterator<Item = f64>) -> Scale {
        let known: Vec<f64> = values.filter(|v| *v > 0.0 && v.is_finite()).collect();
        let Some((least, most)) = interval::range(&known) else {
            return Scale { log: true, from: 1.0, to: 10.0 };
        };
        let from = 10f64.powf(least.log10().floor());
        let to = 10f64.powf(most.log10().ceil());
        Scale { log: true, from, to: if to > from { to } else { from * 10.0 } }
    }

    /// Where a value lies, 0..=1; values outside go to the nearer end.
    pub fn at(&self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(self.from) / self.from).log10() / (self.to / self.from).log10()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        place.clamp(0.0, 1.0)
    }

    /// Values to name, at most about `count`: powers of ten, or steps of 1, 2 and 5.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let count = count.max(1) as f64;
        if self.log {
            let (first, last) = (self.from.log10().round(), (self.to.log10() + 1e-9).floor());
            let step = ((last - first) / count).ceil().max(1.0) as usize;
            return (first as i32..=last as i32).step_by(step).map(|e| 10f64.powi(e)).collect();
        }
        let rough = (self.to - self.from) / count;
        let unit = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|m| m * unit).into_iter().find(|s| *s >= rough * 0.999);
        let step = step.unwrap_or(10.0 * unit);
        let steps = ((self.to - self.from) / step + 1e-9).floor() as usize;
        (0..=steps).map(|i| self.from + step * i as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_start_at_zero_unless_ratios_are_large() {
        let scale = Scale::for_bars(&[10.0, 40.0, 200.0]);
        assert_eq!(scale, Scale { log: false, from: 0.0, to: 200.0 });
        assert!((scale.at(50.0) - 0.25).abs() < 1e-12);
        let scale = Scale::for_bars(&[10.0, 201.0]);
        assert!(scale.log && scale.from == 1.0 && scale.to == 201.0);
        assert!(scale.at(10.0) > 0.1, "the smallest still has a bar");
        // Zero has no place on a logarithmic axis: it goes to its end.
        assert_eq!(Scale::for_bars(&[0.0, 1.0, 100.0]).at(0.0), 0.0);
        assert_eq!(Scale::for_bars(&[]).at(0.5), 0.5);
        assert_eq!(Scale::for_bars(&[0.0]).to, 1.0);
        assert_eq!(Scale::from_zero(&[1.0, 1e6]).at(5e5), 0.5, "however small the smallest");
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(Scale { log: false, from: 0.0, to: 4_030_000.0 }.ticks(4), [0.0, 2e6, 4e6]);
        assert_eq!(Scale { log: false, from: 0.0, to: 1.0 }.ticks(2), [0.0, 0.5, 1.0]);
        let log = Scale { log: true, from: 1.0, to: 2e6 };
        assert_eq!(log.ticks(3), [1.0, 100.0, 1e4, 1e6]);
        for to in [0.0031, 7.0, 19.0, 23_456.0, 9.99e8] {
            let scale = Scale { log: false, from: 0.0, to };
            let ticks = scale.ticks(4);
            assert!(ticks.len() >= 2 && ticks.len() <= 6, "{to}: {ticks:?}");
            assert!(ticks.iter().all(|t| *t <= to * 1.000001), "{to}: {ticks:?}");
        }
    }

    #[test]
    fn decades_are_whole() {
        let scale = Scale::decades([0.3, 4200.0].into_iter());
        assert!((scale.from - 0.1).abs() < 1e-12 && (scale.to - 10_000.0).abs() < 1e-6);
        let one = Scale::decades([10.0].into_iter());
        assert!(one.to > one.from);
    }
}

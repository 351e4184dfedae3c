//! Where bars and labels go: pure arithmetic, so that tests can hold it to its promises.

use super::scale::Scale;
use super::text;

/// Size of labels, in pixels.
pub(crate) const LABEL: f64 = 11.5;
/// Size of what an axis says.
pub(crate) const SMALL: f64 = 10.0;
/// How much wider bold digits and letters are.
const BOLD: f64 = 1.1;
/// From bar to bar.
const PITCH: f64 = 17.0;
const THICKNESS: f64 = 11.0;
/// Space between a label and what it labels.
const GAP: f64 = 6.0;
/// The widest column of names; longer ones are cut (and whole under the pointer).
const NAMES_MAX: f64 = 136.0;

/// One bar, or why there is none.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// The engine's shown name.
    pub name: String,
    /// A small mark behind the name: the durability class.
    pub mark: String,
    /// Its length; `None` where `shown` says why there is none.
    pub value: Option<f64>,
    /// Lowest and highest repetition.
    pub range: Option<(f64, f64)>,
    /// The text at its end.
    pub shown: String,
    pub kind: Kind,
}

/// What a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Peer,
    /// From a document, not measured here: hollow.
    Published,
}

impl Bar {
    /// Width of one of its texts; ours are bold.
    fn width_of(&self, label: &str) -> f64 {
        text::width(label, LABEL) * if self.kind == Kind::Ours { BOLD } else { 1.0 }
    }
}

/// A bar's place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    /// The name as it fits.
    pub name: String,
    pub baseline: f64,
    pub top: f64,
    pub length: f64,
    /// From where to where the repetitions lie.
    pub range: Option<(f64, f64)>,
    pub value_x: f64,
}

/// A panel of bars.
#[derive(Debug)]
pub(crate) struct Bars {
    pub scale: Scale,
    pub height: f64,
    /// Right end of names.
    pub names_end: f64,
    /// Where the marks stand.
    pub mark_x: f64,
    /// Left end of bars.
    pub start: f64,
    pub thickness: f64,
    /// Upper and lower end of the axis.
    pub axis: (f64, f64),
    pub placed: Vec<Placed>,
    /// Places and texts of the axis.
    pub ticks: Vec<(f64, String)>,
}

/// Places bars in a panel of a width.
pub(crate) fn bars(
    bars: &[Bar],
    width: f64,
    top: f64,
    show: impl Fn(f64) -> String,
    scale_of: fn(&[f64]) -> Scale,
) -> Bars {
    let widest = |of: &dyn Fn(&Bar) -> f64| bars.iter().map(of).fold(0.0, f64::max);
    let marks = widest(&|b| text::width(&b.mark, SMALL));
    let names = widest(&|b| b.width_of(&b.name)).clamp(30.0, NAMES_MAX);
    let mark_x = names + if marks > 0.0 { 5.0 } else { 0.0 };
    let start = mark_x + marks + GAP;
    let values = widest(&|b| b.width_of(&b.shown));
    let length_max = (width - start - GAP - values).max(40.0);
    let reach = |b: &Bar| b.value.map(|v| v.max(b.range.map_or(v, |(_, high)| high)));
    let mut all: Vec<f64> = bars.iter().filter_map(reach).collect();
    all.extend(bars.iter().filter_map(|b| b.range.map(|(low, _)| low).or(b.value)));
    let scale = scale_of(&all);
    let x = |v: f64| start + scale.at(v) * length_max;

    let place = |(i, bar): (usize, &Bar)| {
        let bar_top = top + i as f64 * PITCH;
        let length = bar.value.map_or(0.0, |v| scale.at(v) * length_max);
        let range = bar.range.map(|(low, high)| (x(low), x(high)));
        let end = range.map_or(start + length, |(_, high)| high.max(start + length));
        Placed {
            name: text::fit(&bar.name, LABEL, names),
            baseline: bar_top + THICKNESS - 1.5,
            top: bar_top,
            length,
            range,
            value_x: if bar.value.is_some() { end + GAP } else { start + 2.0 },
        }
    };
    let placed: Vec<Placed> = bars.iter().enumerate().map(place).collect();
    let bottom = top + bars.len() as f64 * PITCH;
    let ticks = ticks(&scale, start, length_max, show);
    Bars {
        scale,
        height: bottom + 32.0,
        names_end: names,
        mark_x,
        start,
        thickness: THICKNESS,
        axis: (top - 4.0, bottom),
        placed,
        ticks,
    }
}

/// As many ticks as fit with their texts side by side.
pub(crate) fn ticks(
    scale: &Scale,
    start: f64,
    length: f64,
    show: impl Fn(f64) -> String,
) -> Vec<(f64, String)> {
    let at = |v: f64| (start + scale.at(v) * length, show(v));
    for count in (1..=5).rev() {
        let ticks: Vec<_> = scale.ticks(count).into_iter().map(at).collect();
        let half = |t: &(f64, String)| text::width(&t.1, SMALL) / 2.0 + 4.0;
        if ticks.windows(2).all(|w| w[0].0 + half(&w[0]) <= w[1].0 - half(&w[1])) {
            return ticks;
        }
    }
    vec![at(scale.from)]
}

/// Moves labels that want to be at `wanted` (in any order) apart to `pitch` within `from..=to`,
/// each as little as possible in its order. If they do not fit, they share the room evenly.
pub(crate) fn apart(wanted: &[f64], pitch: f64, from: f64, to: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let room = (to - from).max(0.0);
    let pitch = if wanted.len() > 1 { pitch.min(room / (wanted.len() - 1) as f64) } else { pitch };
    // Without the pitch they need only be in order: neighbours that are not share the mean of what they want.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for (rank, i) in order.iter().enumerate() {
        groups.push((wanted[*i] - rank as f64 * pitch, 1));
        while let [.., (sum_a, a), (sum_b, b)] = groups[..]
            && sum_a / a as f64 > sum_b / b as f64
        {
            groups.truncate(groups.len() - 2);
            groups.push((sum_a + sum_b, a + b));
        }
    }
    let last = (to - wanted.len().saturating_sub(1) as f64 * pitch).max(from);
    let places_of =
        |(sum, n): (f64, usize)| std::iter::repeat_n((sum / n as f64).clamp(from, last), n);
    let mut places = vec![0.0; wanted.len()];
    for ((rank, i), place) in order.iter().enumerate().zip(groups.into_iter().flat_map(places_of)) {
        places[*i] = place + rank as f64 * pitch;
    }
    places
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;

//! A small panel of strips beneath each other: what went on over time, from left to right.

use super::format;
use super::layout::{self, SMALL};
use super::record::Thread;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::text;

/// Width of a panel: four beside each other on a desk's screen.
const WIDTH: f64 = 270.0;
const LEFT: f64 = 2.0;
/// Room above a strip for what its top means.
pub(super) const HEAD: f64 = 16.0;
/// More points than pixels show nothing more.
const POINTS_MAX: usize = 240;

/// One of them.
#[derive(Debug)]
pub(crate) struct Strip {
    /// What it shows, and what its scale reaches to.
    pub what: String,
    pub reach: String,
    pub scale: Scale,
    pub height: f64,
    pub lines: Vec<Thread>,
    /// How its lines look.
    pub class: String,
    /// A value that is marked all the way.
    pub mark: Option<f64>,
}

/// Draws them, with the time below.
pub(crate) fn draw(strips: &[Strip], seconds: f64, gap: f64) -> Svg {
    let mut svg = Svg::new(WIDTH, 0.0);
    let mut y = 0.0;
    for strip in strips {
        strip.draw(&mut svg, seconds, y + HEAD);
        y += HEAD + strip.height + gap;
    }
    time_axis(&mut svg, seconds, y);
    svg.height = y + 18.0;
    svg
}

impl Strip {
    fn draw(&self, svg: &mut Svg, seconds: f64, top: f64) {
        let bottom = top + self.height;
        let height = |value: f64| bottom - self.scale.at(value) * self.height;
        svg.line((LEFT, top), (WIDTH, top), "grid");
        svg.text(LEFT, top - 4.0, Anchor::Start, "small", &self.what);
        let room = WIDTH - LEFT - text::width(&self.what, SMALL) - 10.0;
        svg.text(WIDTH, top - 4.0, Anchor::End, "small", &text::fit(&self.reach, SMALL, room));
        if let Some(mark) = self.mark {
            svg.line((LEFT, height(mark)), (WIDTH, height(mark)), "axis");
        }
        let at = |(when, value): (f64, f64)| {
            (LEFT + (WIDTH - LEFT) * (when / seconds.max(1e-9)).min(1.0), height(value))
        };
        for line in &self.lines {
            let pieces = pieces(line).into_iter().map(|piece| piece.into_iter().map(at).collect());
            svg.path(&pieces.collect::<Vec<_>>(), &self.class, &line.name);
        }
        svg.line((LEFT, bottom), (WIDTH, bottom), "axis");
    }
}

/// Points in time, in pieces between windows without a figure; each in the middle of its window.
fn pieces(thread: &Thread) -> Vec<Vec<(f64, f64)>> {
    // The lowest and the highest of each group of windows: neither stall nor spike is lost.
    let group = (thread.ops_per_s.len() * 2).div_ceil(POINTS_MAX);
    let group = if group <= 2 { 1 } else { group };
    let mut pieces = vec![Vec::new()];
    for (i, chunk) in thread.ops_per_s.chunks(group).enumerate() {
        let known: Vec<(usize, f64)> =
            chunk.iter().enumerate().filter_map(|(k, v)| Some((k, (*v)?))).collect();
        let low = known.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let high = known.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (Some(low), Some(high)) = (low, high) else {
            pieces.push(Vec::new());
            continue;
        };
        let mut both = vec![*low, *high];
        both.sort_by_key(|(k, _)| *k);
        both.dedup();
        let Some(piece) = pieces.last_mut() else { continue };
        for (k, value) in both {
            piece.push((((i * group + k) as f64 + 0.5) * thread.window_s, value));
        }
    }
    pieces
}

/// What the time below a panel is.
fn time_axis(svg: &mut Svg, seconds: f64, y: f64) {
    let scale = Scale { log: false, from: 0.0, to: seconds.max(1e-9) };
    let show = |v: f64| format!("{} s", format::rounded(v));
    let last = WIDTH - LEFT;
    for (x, label) in layout::ticks(&scale, LEFT, last, show) {
        let half = text::width(&label, SMALL) / 2.0;
        let (x, anchor) = match x {
            x if x - half < 0.0 => (0.0, Anchor::Start),
            x if x + half > WIDTH => (WIDTH, Anchor::End),
            x => (x, Anchor::Middle),
        };
        svg.text(x, y + 9.0, anchor, "small", &label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_split_lines_and_extremes_survive() {
        let thread =
            |ops: Vec<Option<f64>>| Thread { name: "r".into(), window_s: 0.5, ops_per_s: ops };
        let with_gap = thread(vec![Some(1.0), None, Some(3.0)]);
        assert_eq!(pieces(&with_gap), [vec![(0.25, 1.0)], vec![(1.25, 3.0)]]);
        let mut many = vec![Some(10.0); 5000];
        (many[1234], many[4321]) = (Some(0.0), Some(99.0));
        let points: Vec<f64> = pieces(&thread(many)).concat().iter().map(|p| p.1).collect();
        assert!(points.len() <= POINTS_MAX + 8 && points.contains(&0.0) && points.contains(&99.0));
    }
}

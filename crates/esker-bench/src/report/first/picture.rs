//! The first screen as one picture in a file of its own, for a README.

use super::First;
use crate::report::bars;
use crate::report::layout::{LABEL, SMALL};
use crate::report::picture::STYLE;
use crate::report::svg::{Anchor, Svg};
use crate::report::text;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "first.svg";

/// Width of a row's panel; three of them beside each other are as wide as a README.
const PANEL: f64 = 264.0;
const GAP: f64 = 24.0;
/// From line to line of words.
const LINE: f64 = 13.0;
/// Room for a group's name.
const HEAD: f64 = 30.0;

/// The picture; nothing where nobody is beside Esker. What was not quiet on the machine stands on top of it.
pub(crate) fn draw(first: &First<'_>, machine: &str, unquiet: Option<&str>) -> Option<String> {
    let columns = first.groups.iter().map(|(_, cards)| cards.len()).max()?;
    // A single column would leave no room for the words.
    let width = columns.max(2) as f64 * (PANEL + GAP) - GAP;
    let mut svg = Svg::new(width, 0.0);
    let mut y = 0.0;
    if let Some(unquiet) = unquiet {
        y = words(&mut svg, unquiet, (0.0, y), width);
    }
    let mut described = Vec::new();
    for (heading, cards) in &first.groups {
        svg.text(0.0, y + HEAD - 10.0, Anchor::Start, "title", heading);
        y += HEAD;
        let mut lowest = y;
        for (i, card) in cards.iter().enumerate() {
            let x = i as f64 * (PANEL + GAP);
            // Bold letters are wider.
            let title = text::wrapped(&card.title, |l| text::width(l, LABEL * 1.08) <= PANEL);
            for (i, line) in title.iter().enumerate() {
                let line = text::fit(line, LABEL * 1.08, PANEL);
                svg.text(x, y + 10.0 + i as f64 * LINE, Anchor::Start, "label name", &line);
            }
            let below = y + title.len() as f64 * LINE;
            let below = words(&mut svg, &format!("{}.", card.verdict), (x, below), PANEL);
            let panel = bars::plain(&card.title, card.row.unit, &card.bars(&first.peers), PANEL);
            svg.place(x, below + 2.0, &panel.svg);
            let bottom = below + 2.0 + panel.svg.height;
            lowest = words(&mut svg, &card.place, (x, bottom), PANEL).max(lowest);
            described.push(format!("{}, {}: {} {}", heading, card.title, panel.desc, card.verdict));
        }
        y = lowest + 4.0;
    }
    y += 12.0;
    for sentence in first.caption().into_iter().chain([format!("Measured on {machine}.")]) {
        y = words(&mut svg, &sentence, (0.0, y), width);
    }
    svg.height = y + 6.0;
    Some(svg.file("Esker beside other engines", &described.join(". "), STYLE))
}

/// Lines of small text from a corner; where the next one goes.
fn words(svg: &mut Svg, sentence: &str, (x, y): (f64, f64), room: f64) -> f64 {
    let lines = text::wrapped(sentence, |line| text::width(line, SMALL) <= room);
    for (i, line) in lines.iter().enumerate() {
        let y = y + (i + 1) as f64 * LINE - 2.0;
        svg.text(x, y, Anchor::Start, "small", &text::fit(line, SMALL, room));
    }
    y + lines.len() as f64 * LINE
}

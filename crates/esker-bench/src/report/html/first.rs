//! The first screen: for each group its rows as bars beside each other, on a phone below each other.

use super::super::bars;
use super::super::first::First;
use super::page::{Page, anchor};

/// Width of a panel: a phone's, and a third of a desk's screen beside the groups' names.
const PANEL: f64 = 330.0;

pub(super) fn write(page: &mut Page, first: &First<'_>) {
    page.raw("<section class=\"first\" aria-label=\"First screen\">\n");
    for (heading, cards) in &first.groups {
        page.raw("<div class=\"group\">\n");
        page.heading(2, &anchor(&format!("first {heading}")), "here", heading);
        page.raw("<div class=\"cards\">\n");
        for card in cards {
            let bars = card.bars(&first.peers);
            let panel = bars::plain(&card.title, card.row.unit, &bars, PANEL);
            page.card(&panel, &card.verdict, &card.place);
        }
        page.raw("</div>\n</div>\n");
    }
    for sentence in first.caption() {
        page.element("p", "quiet", &sentence);
    }
    page.raw("</section>\n");
}

//! SVG, written by hand: a few shapes, and everything escaped.

use std::fmt::Write;

/// A picture of a size in pixels.
#[derive(Debug)]
pub(crate) struct Svg {
    width: f64,
    /// May be set once it is known.
    pub height: f64,
    body: String,
}

/// Which end of a text its place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// `&`, `<`, `>` and quotes as entities; control characters, which XML does not allow, left out.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || c == '\u{FFFE}' || c == '\u{FFFF}' => {}
            c => out.push(c),
        }
    }
    out
}

/// A place, to a tenth of a pixel and without needless digits.
pub(crate) fn num(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0").unwrap_or(&text) {
        "-0" => "0".to_string(),
        short => short.to_string(),
    }
}

impl Svg {
    /// An empty picture.
    pub fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    /// A rectangle, with a text that shows under the pointer.
    pub fn rect(&mut self, x: f64, y: f64, w: f64, h: f64, class: &str, hint: &str) {
        let [x, y, w, h] = [x, y, w.max(0.0), h.max(0.0)].map(num);
        let place = format!(r#"x="{x}" y="{y}" width="{w}" height="{h}""#);
        let hint = escape(hint);
        self.body += &format!(r#"<rect class="{class}" {place}><title>{hint}</title></rect>"#);
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(num);
        self.body += &format!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    /// A line through points; each piece in between gaps is drawn on its own.
    pub fn path(&mut self, pieces: &[Vec<(f64, f64)>], class: &str, hint: &str) {
        let mut d = String::new();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            for (i, (x, y)) in piece.iter().enumerate() {
                let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, num(*x), num(*y));
            }
            if piece.len() == 1 {
                d.push_str("h0.1"); // round ends make it a dot
            }
        }
        if !d.is_empty() {
            let hint = escape(hint);
            self.body += &format!(r#"<path class="{class}" d="{d}"><title>{hint}</title></path>"#);
        }
    }

    /// A text whose baseline is at `y`.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y, text) = (num(x), num(y), escape(text));
        let _ = write!(self.body, r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#);
    }

    /// All of another picture, moved.
    pub fn place(&mut self, x: f64, y: f64, other: &Svg) {
        let (x, y, body) = (num(x), num(y), &other.body);
        let _ = write!(self.body, r#"<g transform="translate({x} {y})">{body}</g>"#);
    }

    /// As part of a page whose style sheet has the classes. `id` is the page's only one.
    pub fn inline(&self, id: &str, class: &str, title: &str, desc: &str) -> String {
        let class = if class.is_empty() { "chart".to_string() } else { format!("chart {class}") };
        self.whole(&format!(r#"class="{class}""#), id, title, desc, "")
    }

    /// As a file of its own, with a style sheet of its own.
    pub fn file(&self, title: &str, desc: &str, style: &str) -> String {
        let style = format!("<style>{style}</style>");
        self.whole(r#"xmlns="http://www.w3.org/2000/svg""#, "", title, desc, &style) + "\n"
    }

    fn whole(&self, first: &str, id: &str, title: &str, desc: &str, style: &str) -> String {
        let (w, h) = (num(self.width), num(self.height));
        let (title, desc, body) = (escape(title), escape(desc), &self.body);
        format!(
            r#"<svg {first} role="img" aria-labelledby="{id}t {id}d" viewBox="0 0 {w} {h}" width="{w}" height="{h}"><title id="{id}t">{title}</title><desc id="{id}d">{desc}</desc>{style}{body}</svg>"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(1.0, 2.04, Anchor::End, "t", "a<b>&\"'\u{0}");
        svg.rect(0.0, 0.0, -3.0, 1.0, "r", "</title>");
        let file = svg.file("<t>", "d", "");
        let parsed = roxmltree::Document::parse(&file).unwrap();
        let text = parsed.descendants().find(|n| n.has_tag_name("text")).unwrap();
        assert_eq!(text.text(), Some("a<b>&\"'"));
        assert_eq!(text.attribute("y"), Some("2"));
        let rect = parsed.descendants().find(|n| n.has_tag_name("rect")).unwrap();
        assert_eq!(rect.attribute("width"), Some("0"));
    }
}

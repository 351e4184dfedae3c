//! A page as it grows: elements with escaped text, and pictures with ids of their own.

use super::super::bars::Panel;
pub(super) use super::super::svg::escape;
use std::fmt::Write;

/// HTML so far.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub out: String,
    pictures: usize,
}

impl Page {
    /// Markup as it is.
    pub fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// An element with a text in it; `class` may be empty.
    pub fn element(&mut self, name: &str, class: &str, text: &str) {
        let class = attribute("class", class);
        let _ = writeln!(self.out, "<{name}{class}>{}</{name}>", escape(text));
    }

    /// A heading that links lead to.
    pub fn heading(&mut self, level: u8, id: &str, class: &str, text: &str) {
        let class = attribute("class", class);
        let _ = writeln!(self.out, "<h{level} id=\"{id}\"{class}>{}</h{level}>", escape(text));
    }

    /// A picture with its caption, in one or several widths, of which the style sheet shows one by the classes.
    pub fn figure(&mut self, widths: &[(Panel, &str)], class: &str, caption: &str) {
        let Some((panel, _)) = widths.first() else { return };
        let svg: String = widths.iter().map(|(panel, class)| self.picture(panel, class)).collect();
        self.out.push_str("<figure>\n<figcaption>");
        self.element("h4", class, &panel.title);
        if !caption.is_empty() {
            self.element("p", "", caption);
        }
        let _ = writeln!(self.out, "</figcaption>\n{svg}\n</figure>");
    }

    /// A picture with what it says above it, and where it is from below.
    pub fn card(&mut self, panel: &Panel, says: &str, from: &str) {
        let svg = self.picture(panel, "");
        self.out.push_str("<figure>\n");
        self.element("h4", "", &panel.title);
        self.element("p", "says", says);
        let _ = writeln!(self.out, "{svg}");
        self.element("figcaption", "", from);
        self.out.push_str("</figure>\n");
    }

    fn picture(&mut self, panel: &Panel, class: &str) -> String {
        self.pictures += 1;
        panel.svg.inline(&format!("p{}", self.pictures), class, &panel.title, &panel.desc)
    }

    /// A table that scrolls by itself, each of its columns with a class; `label` is for those who do not see it.
    pub fn table(
        &mut self,
        label: &str,
        caption: &str,
        columns: &[(&str, &str)],
        lines: &[Vec<String>],
    ) {
        let region = format!("role=\"region\" aria-label=\"{label}\" tabindex=\"0\"");
        let _ = writeln!(self.out, "<div class=\"scroll\" {region}><table>");
        if !caption.is_empty() {
            self.element("caption", "", caption);
        }
        self.head(columns);
        self.out.push_str("<tbody>\n");
        for line in lines {
            self.out.push_str("<tr>");
            for (i, ((class, _), text)) in columns.iter().zip(line).enumerate() {
                let (open, close) = if i == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
                let class = attribute("class", class);
                let _ = write!(self.out, "<{open}{class}>{}</{close}>", escape(text));
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</tbody>\n</table></div>");
    }

    /// The head of a table, each column with its class.
    pub fn head(&mut self, columns: &[(&str, &str)]) {
        self.out.push_str("<thead><tr>");
        for (class, text) in columns {
            let class = attribute("class", class);
            let _ = write!(self.out, "<th scope=\"col\"{class}>{}</th>", escape(text));
        }
        self.out.push_str("</tr></thead>\n");
    }
}

/// An attribute of an element; nothing where it has no value.
pub(super) fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{value}\"") }
}

/// A name as an id: letters and digits.
pub(super) fn anchor(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("s-{}", name.chars().map(plain).collect::<String>())
}

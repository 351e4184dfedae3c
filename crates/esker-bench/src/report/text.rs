//! How wide text is at most, without a font at hand: the widths of the Helvetica family, which the
//! pictures ask for first, and some reserve for wider fonts where that family is not installed.

/// DejaVu Sans, the widest font that is commonly the only one, beside Helvetica.
const RESERVE: f64 = 1.16;

/// Width of a character in thousandths of the font size.
fn char_width(c: char) -> f64 {
    let thousandths: u16 = match c {
        'i' | 'j' | 'l' | '\'' => 222,
        '|' => 260,
        ' ' | '.' | ',' | ':' | ';' | 'I' | 'f' | 't' | '/' | '\\' | '!' | '[' | ']' | '·' => 278,
        'r' | '(' | ')' | '-' | '{' | '}' | '`' => 333,
        '*' => 389,
        '"' => 355,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' | 'J' => 500,
        'w' => 722,
        'm' | 'M' => 833,
        'a'..='z' | '0'..='9' | '_' | '#' | '$' | 'µ' | '?' => 556,
        '+' | '<' | '=' | '>' | '~' | '×' | '±' | '≥' | '≤' => 584,
        'F' | 'L' | 'T' | 'Z' => 611,
        'A' | 'B' | 'E' | 'K' | 'P' | 'S' | 'V' | 'X' | 'Y' | '&' => 667,
        'C' | 'D' | 'H' | 'N' | 'R' | 'U' => 722,
        'G' | 'O' | 'Q' => 778,
        '%' => 889,
        'W' => 944,
        '–' => 556,
        '…' | '—' | '@' => 1000,
        c if (c as u32) < 0x2E80 => 722,
        _ => 1000,
    };
    f64::from(thousandths) / 1000.0
}

/// Estimated width of `text` at a font size, in the unit of the size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(char_width).sum::<f64>() * size * RESERVE
}

/// `text`, cut with an ellipsis where it is wider than `room`.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_string();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if width(&kept, size) + width(&format!("{c}…"), size) > room {
            break;
        }
        kept.push(c);
    }
    kept.truncate(kept.trim_end().len());
    kept + "…"
}

/// `text` in lines that `fits` has room for, broken between words; a word that is too long has a line of its own.
pub(crate) fn wrapped(text: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}")).filter(|line| fits(line));
        match (longer, lines.last_mut()) {
            (Some(longer), Some(line)) => *line = longer,
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let lines = wrapped("a row of  words, unbreakable as some are", |l| l.len() <= 9);
        assert_eq!(lines, ["a row of", "words,", "unbreakable", "as some", "are"]);
        assert_eq!(wrapped(" ", |_| true), [""; 0]);
    }

    #[test]
    fn widths_add_up_and_text_is_cut_to_its_room() {
        assert!((width("mi", 10.0) - 10.55 * RESERVE).abs() < 1e-9);
        assert_eq!(fit("rocksdb", 11.0, 200.0), "rocksdb");
        let cut = fit("an-engine-with-a-very-long-name", 11.0, 80.0);
        assert!(cut.ends_with('…') && width(&cut, 11.0) <= 80.0, "{cut}");
        assert!(width(&cut, 11.0) > 60.0, "cut too early: {cut}");
    }
}

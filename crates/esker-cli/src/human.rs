//! Numbers for people: units, thousands, shares, bars; and sizes as people write them.

/// `1536` as `1.5 KiB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0 of the smaller unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `1234567` as `1,234,567`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 table`, `2 tables`, `3 entries`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{} {stem}ies", count(n)),
        _ => format!("{} {noun}s", count(n)),
    }
}

/// `part` of `whole` as a percentage; nothing has no share.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0%".into();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    if percent > 0.0 && percent < 10.0 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

/// A bar of `width` characters at most for `n` of `max`; anything above nothing shows.
pub(crate) fn bar(n: u64, max: u64, width: usize) -> String {
    if n == 0 || max == 0 {
        return String::new();
    }
    let filled = (n as f64 / max as f64 * width as f64).round() as usize;
    "#".repeat(filled.clamp(1, width))
}

/// An order of keys without the prefix that the built-in ones are stored with.
pub(crate) fn order(name: &str) -> &str {
    name.strip_prefix("esker.").unwrap_or(name)
}

/// Reads a size such as `64MiB`, `64M`, `1.5g` or `4096`. K, M, G and T count in 1024s, with or
/// without `iB`; `kB`, `MB`, `GB` and `TB` in 1000s.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let wrong = || format!("{text:?} is no size; write for example 65536, 64MiB or 1G");
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit: u64 = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let size = number * unit as f64;
    // Above 2^53 a float no longer counts single bytes; no memory is that large.
    if size > (1u64 << 53) as f64 { Err(wrong()) } else { Ok(size as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let sizes = [0, 1023, 1024, 1536, (1 << 20) - 1, 1 << 20, u64::MAX].map(bytes);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "1.0 MiB", "16.0 EiB"]
        );
        assert_eq!([0, 999, 1000, 1234567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(2000, "entry"), "2,000 entries");
        assert_eq!(counted(0, "table"), "0 tables");
        assert_eq!([share(0, 0), share(1, 1000), share(1, 2)], ["0%", "0.1%", "50%"]);
        assert_eq!([bar(0, 9, 10), bar(1, 1000, 10), bar(9, 9, 4)], ["", "#", "####"]);
    }

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("4096", 4096),
            ("64M", 64 << 20),
            ("64 MiB", 64 << 20),
            ("1.5g", 3 << 29),
            ("2kB", 2000),
            ("10b", 10),
        ] {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "-1", "1x", "1.2.3", "99999999999T", "é"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}

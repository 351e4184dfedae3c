//! Numbers as people read them.

use crate::plan::{Bound, Unit};

/// 1234567 as 1,234,567.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::from(if value <= -0.5 { "-" } else { "" });
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A size of values as options have it: bytes, or the name of a kind.
pub(crate) fn value_size(size: &str) -> String {
    if size.ends_with(|c: char| c.is_ascii_digit()) {
        format!("{size} B")
    } else {
        size.to_string()
    }
}

/// About three significant digits, grouped: 1234567 as 1,230,000, as the reports of old did.
pub(crate) fn rounded(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_string();
    }
    let magnitude = value.abs().log10().floor();
    if magnitude >= 2.0 {
        let unit = 10f64.powf(magnitude - 2.0);
        return grouped((value / unit).round() * unit);
    }
    let decimals = (2.0 - magnitude).clamp(0.0, 6.0) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

/// As short as an axis needs it: 0, 20 k, 1.5 M.
pub(crate) fn short(value: f64) -> String {
    scaled(value, &[(1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k"), (0.0, 1.0, "")])
}

/// 1536 MB as 1.54 GB: powers of ten, as disks are sold.
pub(crate) fn bytes(value: f64) -> String {
    scaled(value, &[(1e9, 1e9, " GB"), (1e6, 1e6, " MB"), (1e3, 1e3, " kB"), (0.0, 1.0, " B")])
}

/// Powers of two, as memory is set: 4 MiB.
pub(crate) fn memory(value: f64) -> String {
    let [kib, mib, gib] = [10, 20, 30].map(|power| f64::from(1 << power));
    // Of the largest unit only whole ones: 1,536 MiB.
    let from_gib = if value % gib == 0.0 { gib } else { f64::INFINITY };
    scaled(
        value,
        &[(from_gib, gib, " GiB"), (mib, mib, " MiB"), (kib, kib, " KiB"), (0.0, 1.0, " B")],
    )
}

/// A time in the unit that suits it: 12,000 µs as 12 ms.
pub(crate) fn micros(us: f64) -> String {
    match us {
        0.0 => "0".to_string(),
        _ => scaled(
            us,
            &[(1e6, 1e6, " s"), (1e3, 1e3, " ms"), (0.1, 1.0, " µs"), (0.0, 1e-3, " ns")],
        ),
    }
}

/// A value in the first of some units that it is large enough for: from where on, how much each is, and its name.
fn scaled(value: f64, units: &[(f64, f64, &str)]) -> String {
    let unit = units.iter().find(|(from, ..)| value.abs() >= *from);
    let (_, size, name) = unit.unwrap_or(&(0.0, 1.0, ""));
    format!("{}{name}", rounded(value / size))
}

/// A moment as people write it: 2026-11-21T03:00:12Z as 2026-11-21 03:00 UTC; others as they are.
pub(crate) fn moment(text: &str) -> String {
    match (text.get(..10), text.get(10..11), text.get(11..16)) {
        (Some(day), Some("T"), Some(time)) if text.ends_with('Z') => format!("{day} {time} UTC"),
        _ => text.to_string(),
    }
}

/// A ratio: 0.85×, 1.3×, 24×.
pub(crate) fn ratio(value: f64) -> String {
    match value {
        f64::INFINITY => ">1,000×".to_string(),
        v if v >= 9.95 => format!("{}×", grouped(v)),
        v if v >= 1.95 => format!("{v:.1}×"),
        v if v >= 0.095 => format!("{v:.2}×"),
        v if v >= 0.001 => format!("{v:.3}×"),
        _ => "<0.001×".to_string(),
    }
}

/// A ratio that may only be a bound: `<0.06×` where the other's figure is too small to count.
pub(crate) fn bounded(value: f64, bound: Bound) -> String {
    let shown = ratio(value);
    let digits = shown.trim_start_matches(['<', '>']);
    match bound {
        Bound::AtMost => format!("<{digits}"),
        // More than less than that is more than nothing.
        Bound::AtLeast if shown.starts_with('<') => ">0×".to_string(),
        Bound::AtLeast => format!(">{digits}"),
        Bound::Exact | Bound::Neither => shown,
    }
}

/// A share of the machine's limit. Nothing does more than the machine can.
pub(crate) fn of_limit(share: f64) -> String {
    if share > 1.0 { "limit measured too low".to_string() } else { percent(share) }
}

/// A share: 85 %, 4.2 %.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() < 9.95 { format!("{value:.1} %") } else { format!("{} %", grouped(value)) }
}

impl Unit {
    /// Whether more is better.
    pub(crate) fn more_is_better(self) -> bool {
        self == Unit::OpsPerSecond
    }

    /// Its name on an axis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::OpsPerSecond => "operations a second",
            Unit::Seconds | Unit::Milliseconds => "time",
            Unit::Bytes => "bytes",
            Unit::Times => "times",
        }
    }

    /// A value with its unit, short.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Unit::OpsPerSecond => format!("{}/s", rounded(value)),
            Unit::Seconds => micros(value * 1e6),
            Unit::Milliseconds => micros(value * 1e3),
            Unit::Bytes => bytes(value),
            Unit::Times => format!("{}×", rounded(value)),
        }
    }
}

fn trimmed(number: &str) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(-1234.0), "-1,234");
        assert_eq!(rounded(1_234_567.0), "1,230,000");
        assert_eq!(rounded(999.6), "1,000");
        assert_eq!(rounded(12.345), "12.3");
        assert_eq!(rounded(0.00123), "0.00123");
        assert_eq!(rounded(0.0), "0");
        assert_eq!(short(20_000.0), "20 k");
        assert_eq!(short(1_500_000.0), "1.5 M");
        assert_eq!(short(1000.0), "1,000");
        assert_eq!(bytes(1_536e6), "1.54 GB");
        assert_eq!(memory(4.0 * 1024.0 * 1024.0), "4 MiB");
        assert_eq!(short(316_520.0), "317 k");
        assert_eq!(moment("2026-11-21T03:00:12Z"), "2026-11-21 03:00 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
        assert_eq!(micros(12_000.0), "12 ms");
        assert_eq!(
            (ratio(0.8512), ratio(3.06), ratio(24.4)),
            ("0.85×".into(), "3.1×".into(), "24×".into())
        );
        assert_eq!(bounded(0.0561, Bound::AtMost), "<0.056×");
        assert_eq!(bounded(0.0001, Bound::AtMost), "<0.001×");
        assert_eq!(bounded(0.0001, Bound::Exact), "<0.001×");
        assert_eq!(bounded(0.0001, Bound::AtLeast), ">0×");
        assert_eq!(
            (bounded(24.0, Bound::AtLeast), bounded(0.35, Bound::Exact)),
            (">24×".into(), "0.35×".into())
        );
        assert_eq!(
            (of_limit(0.852), of_limit(1.04)),
            ("85 %".into(), "limit measured too low".into())
        );
        assert_eq!((percent(0.852), percent(0.042)), ("85 %".into(), "4.2 %".into()));
    }
}

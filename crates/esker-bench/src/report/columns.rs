//! Columns of equal width on a terminal.

/// Lines of cells beneath each other, two spaces between; those of the columns that are `left` begin at the same place, those of
/// all others end there.
pub(crate) fn aligned<L: AsRef<[String]>>(lines: &[L], left: impl Fn(usize) -> bool) -> String {
    let columns = lines.iter().map(|line| line.as_ref().len()).max().unwrap_or(0);
    let mut widths = vec![0; columns];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line.as_ref()) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for line in lines {
        let cells = line.as_ref().iter().zip(&widths).enumerate();
        let padded = cells.map(|(i, (cell, &width))| match left(i) {
            true => format!("{cell:width$}"),
            false => format!("{cell:>width$}"),
        });
        out += padded.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

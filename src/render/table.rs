//! Plain columns: aligned, separated by two blanks, nothing else.

use std::io::{self, Write};

/// Which side a column's cells are set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Prints rows under a heading.
pub(crate) fn print<const N: usize>(
    out: &mut impl Write,
    heading: [(&str, Align); N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([heading[column].0.len()])
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut line = |cells: [&str; N]| {
        let mut text = String::new();
        for (column, cell) in cells.into_iter().enumerate() {
            let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            match heading[column].1 {
                Align::Left => text.extend([cell, &pad]),
                Align::Right => text.extend([&pad, cell]),
            }
            text.push_str("  ");
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(heading.map(|(name, _)| name))?;
    rows.iter()
        .try_for_each(|row| line(row.each_ref().map(String::as_str)))
}

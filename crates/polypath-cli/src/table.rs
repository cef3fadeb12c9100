//! Plain text tables.

use std::fmt;

/// Rows of cells; columns are as wide as their widest cell. The first column is left-aligned, and
/// so is any other with a cell that is not a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Self { head: head.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row, one cell for each column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.head.len());
        self.rows.push(cells.into());
    }
}

fn is_number(cell: &str) -> bool {
    cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit())
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = |index: usize| self.rows.iter().map(move |row| row[index].as_str());
        let shapes: Vec<(usize, bool)> = (0..self.head.len())
            .map(|index| {
                let cells = column(index).chain([self.head[index]]);
                let width = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
                (width, index > 0 && column(index).all(is_number))
            })
            .collect();
        let head: Vec<String> = self.head.iter().map(|&name| name.to_owned()).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::from(" ");
            for (cell, &(width, right)) in row.iter().zip(&shapes) {
                line.push(' ');
                line.push_str(&if right {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:width$}")
                });
                line.push(' ');
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["name", "bytes", "state"]);
        table.row(["a".into(), "5".into(), "active".into()]);
        table.row(["longer".into(), "-".into(), "x".into()]);
        assert_eq!(
            table.to_string(),
            "  name    bytes  state\n  a           5  active\n  longer      -  x\n"
        );
    }
}

// SPDX-License-Identifier: GPL-2.0
//! Columns for people, coloured where the output is a terminal.

use std::io::IsTerminal;

use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Plain,
    Bold,
    Green,
    Yellow,
    Red,
    Dim,
}

impl Colour {
    /// Select Graphic Rendition of ECMA-48.
    fn code(self) -> &'static str {
        match self {
            Colour::Plain => "0",
            Colour::Bold => "1",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
            Colour::Dim => "2",
        }
    }
}

/// Text and its colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell(pub String, pub Colour);

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell(text.to_owned(), Colour::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell(text, Colour::Plain)
    }
}

/// Whether to colour: on a terminal that can, unless told otherwise (no-color.org).
fn coloured() -> bool {
    std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
}

/// Prints rows with a bold head; the last column is as wide as it is.
pub fn print(head: &[&str], rows: &[Vec<Cell>]) -> Result<()> {
    crate::say::print(text(head, rows))
}

pub fn text(head: &[&str], rows: &[Vec<Cell>]) -> String {
    render(head, rows, coloured())
}

fn render(head: &[&str], rows: &[Vec<Cell>], coloured: bool) -> String {
    let head: Vec<Cell> = head
        .iter()
        .map(|text| Cell((*text).to_owned(), Colour::Bold))
        .collect();
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| {
        let lengths = all().filter_map(|row| Some(row.get(column)?.0.chars().count()));
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut out = String::new();
    for row in all() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = " ".repeat(width - cell.0.chars().count() + 2);
            line += &match coloured && cell.1 != Colour::Plain {
                true => format!("\x1b[{}m{}\x1b[0m{padding}", cell.1.code(), cell.0),
                false => format!("{}{padding}", cell.0),
            };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns() {
        let rows = [
            vec!["a".into(), Cell("up".into(), Colour::Green)],
            vec!["longer".into(), "x y".into()],
        ];
        assert_eq!(
            render(&["NAME", "STATE"], &rows, false),
            "NAME    STATE\na       up\nlonger  x y\n"
        );
        assert!(render(&["NAME", "STATE"], &rows, true).contains("\x1b[32mup\x1b[0m"));
    }
}

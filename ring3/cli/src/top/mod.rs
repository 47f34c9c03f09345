// SPDX-License-Identifier: GPL-2.0
//! `ring3 top`: what all nodes do, as top(1) shows processes.
//!
//! On a terminal it is a screen that renews itself; else it is a table for each interval, as `top -b` prints, or a line of JSON.

mod look;
mod screen;

use std::io::IsTerminal;
use std::time::Duration;

use crate::args;
use crate::error::Result;
use crate::say;
use crate::table::{self, Cell};

use look::{Row, Sort, Watch};

/// Asking a node takes part of a millisecond of its kernel.
const EVERY_MIN: Duration = Duration::from_millis(100);

pub fn top(args: &args::Top) -> Result<()> {
    let every = Duration::from_secs_f64(args.every).max(EVERY_MIN);
    if args.count.is_none() && !args.json && std::io::stdout().is_terminal() {
        return screen::show(every);
    }
    let mut watch = Watch::start()?;
    let mut left = args.count;
    while left != Some(0) {
        std::thread::sleep(every);
        let mut rows = watch.look()?;
        Sort::Name.apply(&mut rows);
        left = left.map(|count| count - 1);
        let mut text = match args.json {
            true => json(&rows),
            false => table(&rows),
        };
        if left != Some(0) && !args.json {
            text.push('\n');
        }
        // Whoever read has seen enough.
        if !say::print_on(text)? {
            return Ok(());
        }
    }
    Ok(())
}

fn json(rows: &[Row]) -> String {
    let all: Vec<_> = rows.iter().map(Row::json).collect();
    serde_json::json!(all).to_string() + "\n"
}

fn table(rows: &[Row]) -> String {
    let cells: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| row.cells().map(Cell::from).to_vec())
        .collect();
    table::text(&Row::HEAD, &cells)
}

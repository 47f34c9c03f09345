// SPDX-License-Identifier: GPL-2.0
//! Benchmarks, each beside the host: `bench/run NAME [ROUNDS]`.

mod boot;
mod null;
mod passthrough;
mod spawn;
mod spread;
mod tool;

use std::process::ExitCode;

const USAGE: &str = "usage: bench/run null|boot|passthrough|spawn [ROUNDS]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rounds = match args.get(1).map(|text| text.parse::<usize>()) {
        None => None,
        Some(Ok(rounds)) if rounds >= 3 => Some(rounds),
        Some(_) => {
            eprintln!("bench: ROUNDS has to be a number of at least 3\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let result = match args.first().map(String::as_str) {
        Some("null") => null::run(rounds.unwrap_or(15)),
        Some("passthrough") => passthrough::run(rounds.unwrap_or(21)),
        Some("spawn") => spawn::run(rounds.unwrap_or(11)),
        Some("boot") => boot::run(rounds.unwrap_or(21)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::from(3)
        }
    }
}

// SPDX-License-Identifier: GPL-2.0
//! KTAP, the words in which a kernel tells of its tests (Documentation/dev-tools/ktap.rst).
//!
//! A result comes after the results that it sums up, which are four blanks further in. So
//! results wait, by depth, for one that is less deep: what waits one step deeper is its own.

use serde::Serialize;

/// Columns of one level.
const STEP: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pass,
    Fail,
    Skip,
}

/// A suite, a case of it, or a parameter of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub name: String,
    pub status: Status,
    /// Why it was skipped, or what was expected in vain.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Outcome>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Outcome {
    /// Counts what has nothing below it.
    fn count(&self, counts: &mut Counts) {
        if !self.results.is_empty() {
            self.results.iter().for_each(|one| one.count(counts));
            return;
        }
        match self.status {
            Status::Pass => counts.passed += 1,
            Status::Fail => counts.failed += 1,
            Status::Skip => counts.skipped += 1,
        }
    }
}

/// The meaning of a line of a kernel's log in KTAP.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Version,
    Plan(usize),
    Result(Status, &'a str, &'a str),
    Words(&'a str),
}

#[derive(Debug, Default)]
pub struct Parser {
    /// Inside a report: the rest of a log is of no interest.
    begun: bool,
    planned: Option<usize>,
    waiting: Vec<Vec<Outcome>>,
    words: Vec<String>,
}

impl Parser {
    /// Takes a line of the log; whether it belongs to the report.
    pub fn line(&mut self, line: &str) -> bool {
        let line = without_time(line.trim_end());
        let text = line.trim_start_matches(' ');
        let depth = (line.len() - text.len()) / STEP;
        let what = classify(text);
        if !self.begun {
            self.begun = depth == 0 && what == Line::Version;
            return self.begun;
        }
        if self.complete() && !text.starts_with('#') {
            return false;
        }
        match what {
            Line::Version => {}
            Line::Plan(n) => {
                if depth == 0 {
                    self.planned = Some(n);
                }
            }
            Line::Result(status, name, why) => self.result(depth, status, name, why),
            // Kernel messages begin in the first column, the details of a failure do not.
            Line::Words(text) => {
                if depth == 0 && !text.starts_with('#') {
                    return false;
                }
                self.words.push(text.trim_start_matches("# ").to_owned());
            }
        }
        true
    }

    fn result(&mut self, depth: usize, status: Status, name: &str, why: &str) {
        let results = match self.waiting.len() > depth + 1 {
            true => self.waiting.swap_remove(depth + 1),
            false => Vec::new(),
        };
        self.waiting.resize_with(depth + 1, Vec::new);
        let words = std::mem::take(&mut self.words);
        let why = match status {
            Status::Fail if results.is_empty() => failure(&words),
            _ => why.to_owned(),
        };
        self.waiting[depth].push(Outcome {
            name: name.to_owned(),
            status,
            why,
            results,
        });
    }

    /// Every suite that was announced has a result.
    pub fn complete(&self) -> bool {
        self.planned
            .is_some_and(|planned| planned == self.suites().len())
    }

    /// How many suites were announced.
    pub fn planned(&self) -> usize {
        self.planned.unwrap_or(0)
    }

    pub fn suites(&self) -> &[Outcome] {
        self.waiting.first().map_or(&[], Vec::as_slice)
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.suites().iter().for_each(|one| one.count(&mut counts));
        counts
    }
}

/// `[    0.012345] text`, as kernels with CONFIG_PRINTK_TIME write.
fn without_time(line: &str) -> &str {
    let time = |line: &str| -> Option<usize> {
        let inside = line.strip_prefix('[')?;
        let end = inside.find("] ")?;
        let number = inside[..end].trim_start_matches(' ');
        number
            .bytes()
            .all(|b| b.is_ascii_digit() || b == b'.')
            .then_some(end + 3)
    };
    &line[time(line).unwrap_or(0)..]
}

fn classify(text: &str) -> Line<'_> {
    if text.starts_with("KTAP version ") || text.starts_with("TAP version ") {
        return Line::Version;
    }
    if let Some(n) = text.strip_prefix("1..").and_then(|n| n.parse().ok()) {
        return Line::Plan(n);
    }
    let (status, rest) = match (text.strip_prefix("ok "), text.strip_prefix("not ok ")) {
        (Some(rest), _) => (Status::Pass, rest),
        (_, Some(rest)) => (Status::Fail, rest),
        _ => return Line::Words(text),
    };
    let Some((number, rest)) = rest.split_once(' ') else {
        return Line::Words(text);
    };
    if number.parse::<usize>().is_err() {
        return Line::Words(text);
    }
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    match rest.split_once("# SKIP") {
        Some((name, why)) if status == Status::Pass => {
            Line::Result(Status::Skip, name.trim(), why.trim())
        }
        _ => Line::Result(status, rest.trim(), ""),
    }
}

/// Of the words before a failed result: from the first expectation on, without the sums.
fn failure(words: &[String]) -> String {
    let from = words
        .iter()
        .position(|w| w.contains("FAILED at") || w.contains("timed out"))
        .unwrap_or(words.len());
    words[from..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
Linux version 6.12
[    0.010000] KTAP version 1
[    0.010000] 1..2
    KTAP version 1
    # Subtest: a
    # module: a_test
    1..3
    ok 1 plain
BUG: something of the kernel's
        KTAP version 1
        # Subtest: many
        ok 1 one
        ok 2 two # SKIP no need
    # many: pass:1 fail:0 skip:1 total:2
    ok 2 many
    # bad: EXPECTATION FAILED at a.c:7
    Expected x == 1, but
        x == 2 (0x2)
    not ok 3 bad
# a: pass:2 fail:1 skip:0 total:3
# Totals: pass:2 fail:1 skip:1 total:4
not ok 1 a
";

    fn parse(log: &str) -> Parser {
        let mut parser = Parser::default();
        log.lines().for_each(|line| {
            parser.line(line);
        });
        parser
    }

    #[test]
    fn results_nest() {
        let parser = parse(LOG);
        assert!(!parser.complete(), "the second suite is missing");
        let [suite] = parser.suites() else {
            panic!("{:?}", parser.suites())
        };
        assert_eq!((suite.name.as_str(), suite.status), ("a", Status::Fail));
        let names: Vec<_> = suite.results.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["plain", "many", "bad"]);
        assert_eq!(suite.results[1].results.len(), 2);
        assert_eq!(suite.results[1].results[1].why, "no need");
        assert_eq!(
            suite.results[2].why,
            "bad: EXPECTATION FAILED at a.c:7\nExpected x == 1, but\nx == 2 (0x2)"
        );
        let counts = Counts {
            passed: 2,
            failed: 1,
            skipped: 1,
        };
        assert_eq!(parser.counts(), counts);
    }

    #[test]
    fn what_is_shown() {
        let mut parser = Parser::default();
        assert!(!parser.line("ok 1 before the report"));
        assert!(parser.line("KTAP version 1"));
        assert!(!parser.line("NET: Registered a protocol"));
        assert!(parser.line("    Expected x == 1, but"));
        assert!(parser.line("# Totals: pass:1"));
        assert!(!parser.line("ok, said the kernel"));
        assert!(parser.suites().is_empty());
    }

    #[test]
    fn complete() {
        assert!(parse("KTAP version 1\n1..1\nok 1 a\n").complete());
        assert!(!parse("KTAP version 1\n").complete());
        let mut parser = parse("KTAP version 1\n1..1\nok 1 a\n");
        assert!(!parser.line("    HOME=/"), "the rest of the kernel's log");
        assert!(!parse("").complete());
    }
}

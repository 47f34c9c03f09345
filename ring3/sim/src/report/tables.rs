// SPDX-License-Identifier: GPL-2.0
//! The samples, read back: from rows that say what changed to lines over time.

use std::collections::BTreeMap;

use super::chart::Series;

#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The times of all samples of the file.
    times: Vec<f64>,
}

impl Table {
    /// Fields hold neither commas nor quotes (sample.rs).
    pub fn parse(text: &str) -> Table {
        let mut lines = text.lines();
        let split = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let header = lines.next().map(split).unwrap_or_default();
        let rows: Vec<Vec<String>> = lines
            .map(split)
            .filter(|row| row.len() == header.len())
            .collect();
        let mut times: Vec<f64> = rows.iter().filter_map(|row| row[0].parse().ok()).collect();
        times.dedup();
        Table {
            header,
            rows,
            times,
        }
    }

    pub fn filter(&self, keep: impl Fn(&[String]) -> bool) -> Table {
        Table {
            header: self.header.clone(),
            rows: self.rows.iter().filter(|row| keep(row)).cloned().collect(),
            times: self.times.clone(),
        }
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }

    /// Rows of those whose column `name` ever tells of more than a handshake.
    pub fn senders(&self, name: &str, key: &[&str]) -> Table {
        let Some(column) = self.column(name) else {
            return self.clone();
        };
        let mut most: BTreeMap<String, u64> = BTreeMap::new();
        for row in &self.rows {
            let entry = most.entry(self.key(row, key)).or_default();
            *entry = (*entry).max(row[column].parse().unwrap_or(0));
        }
        self.filter(|row| {
            most.get(&self.key(row, key))
                .is_some_and(|bytes| *bytes > 1)
        })
    }

    /// Without rows whose column `name` is 0: not known yet.
    pub fn known(&self, name: &str) -> Table {
        match self.column(name) {
            Some(column) => self.filter(|row| row[column] != "0"),
            None => self.clone(),
        }
    }

    fn key(&self, row: &[String], key: &[&str]) -> String {
        let parts: Vec<&str> = key
            .iter()
            .filter_map(|name| Some(row[self.column(name)?].as_str()))
            .collect();
        parts.join(" ")
    }

    /// A line for each key, `scale` times a column.
    pub fn values(&self, key: &[&str], column: &str, scale: f64) -> Vec<Series> {
        let Some(column) = self.column(column) else {
            return Vec::new();
        };
        let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for row in &self.rows {
            if let (Ok(time), Ok(value)) = (row[0].parse(), row[column].parse::<f64>()) {
                let points = lines.entry(self.key(row, key)).or_default();
                points.push((time, value * scale));
            }
        }
        lines
            .into_iter()
            .map(|(name, points)| Series { name, points })
            .collect()
    }

    /// The same of how fast a counter grows, a second. A sample without a row is one without a change.
    pub fn rates(&self, key: &[&str], column: &str, scale: f64) -> Vec<Series> {
        let mut all = self.values(key, column, scale);
        for series in &mut all {
            let known: BTreeMap<u64, f64> = series
                .points
                .iter()
                .map(|(time, value)| (time.to_bits(), *value))
                .collect();
            let (mut last, mut points) = ((0.0, 0.0), Vec::new());
            for time in &self.times {
                let value = known.get(&time.to_bits()).copied().unwrap_or(last.1);
                if *time > last.0 {
                    points.push((*time, (value - last.1).max(0.0) / (time - last.0)));
                }
                last = (*time, value);
            }
            series.points = points;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "time,host,tx\n1.0,a,10\n1.0,b,1\n2.0,a,30\n3.0,b,2\n";

    #[test]
    fn rates_fill_gaps() {
        let table = Table::parse(TEXT);
        let lines = table.rates(&["host"], "tx", 2.0);
        assert_eq!(lines[0].points, [(1.0, 20.0), (2.0, 40.0), (3.0, 0.0)]);
        assert_eq!(lines[1].points, [(1.0, 2.0), (2.0, 0.0), (3.0, 2.0)]);
    }

    #[test]
    fn senders_send() {
        let table = Table::parse(TEXT).senders("tx", &["host"]);
        assert_eq!(table.values(&["host"], "tx", 1.0).len(), 2);
        let table = Table::parse("time,host,tx\n1.0,a,1\n").senders("tx", &["host"]);
        assert!(table.values(&["host"], "tx", 1.0).is_empty());
    }
}

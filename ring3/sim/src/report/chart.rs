// SPDX-License-Identifier: GPL-2.0
//! Lines over time, as SVG.

use std::fmt::Write;

use super::escape;
use crate::run::Happening;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// Room for the numbers at the left and below.
const LEFT: f64 = 64.0;
const BELOW: f64 = 24.0;
const ABOVE: f64 = 8.0;
const RIGHT: f64 = 8.0;
/// An axis has so many steps, or one more or less.
const STEPS: f64 = 4.0;
/// Colours that are told apart, also by the colour-blind (Okabe and Ito), then the same dashed.
const COLOURS: &[&str] = &[
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#777777",
];

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    /// Seconds and values.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    fn most(&self) -> f64 {
        self.points
            .iter()
            .map(|(_, value)| *value)
            .fold(0.0, f64::max)
    }
}

pub struct Chart<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    /// Seconds.
    pub stop: f64,
    pub events: &'a [Happening],
}

impl Chart<'_> {
    /// Nothing where every value is zero.
    pub fn draw(&self, mut series: Vec<Series>, lines: usize) -> String {
        series.retain(|line| line.most() > 0.0);
        if series.is_empty() {
            return String::new();
        }
        let count = series.len();
        series.sort_by(|a, b| b.most().total_cmp(&a.most()).then(a.name.cmp(&b.name)));
        series.truncate(lines);
        let step = nice(series[0].most() / STEPS);
        let top = step * (series[0].most() / step).ceil();
        let mut out = format!("<figure><figcaption>{} ({})", escape(self.title), self.unit);
        if count > lines {
            let _ = write!(out, ", the {lines} largest of {count}");
        }
        let _ = write!(
            out,
            "</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(self.title)
        );
        self.axes(top, step, &mut out);
        for event in self.events {
            let x = self.x(event.at as f64 / 1e9);
            let _ = write!(
                out,
                "<line class=\"event\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{ABOVE}\" y2=\"{}\"><title>{:.3} s: {}</title></line>",
                HEIGHT - BELOW,
                event.at as f64 / 1e9,
                escape(&event.what)
            );
        }
        for (i, line) in series.iter().enumerate() {
            self.line(i, line, top, &mut out);
        }
        out.push_str("</svg><ul class=\"legend\">");
        for (i, line) in series.iter().enumerate() {
            let _ = write!(
                out,
                "<li data-line=\"{i}\"><i style=\"border-top:3px {} {}\"></i>{}</li>",
                if is_dashed(i) { "dashed" } else { "solid" },
                colour(i),
                escape(&line.name)
            );
        }
        out.push_str("</ul></figure>");
        out
    }

    fn x(&self, time: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * time / self.stop.max(1e-9)
    }

    fn y(&self, value: f64, top: f64) -> f64 {
        HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * value / top
    }

    fn axes(&self, top: f64, step: f64, out: &mut String) {
        for i in 0..=(top / step).round() as u32 {
            let value = step * f64::from(i);
            let y = self.y(value, top);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                number(value)
            );
        }
        let step = nice(self.stop.max(1e-9) / STEPS);
        for i in 0..=(self.stop / step + 1e-9) as u32 {
            let time = step * f64::from(i);
            let is_last = self.x(time) > WIDTH - 3.0 * RIGHT;
            let anchor = if is_last { "end" } else { "middle" };
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{} s</text>",
                self.x(time),
                HEIGHT - 6.0,
                number(time)
            );
        }
    }

    fn line(&self, i: usize, line: &Series, top: f64, out: &mut String) {
        let points: Vec<String> = line
            .points
            .iter()
            .map(|(time, value)| format!("{:.1},{:.1}", self.x(*time), self.y(*value, top)))
            .collect();
        let dash = match is_dashed(i) {
            false => "",
            true => " stroke-dasharray=\"5 3\"",
        };
        // One point makes no line: a dot then.
        let _ = match points.as_slice() {
            [one] => {
                let (x, y) = one.split_once(',').unwrap_or(("0", "0"));
                write!(out, "<circle class=\"l{i}\" cx=\"{x}\" cy=\"{y}\" r=\"2\" fill=\"{}\"/>", colour(i))
            }
            many => write!(
                out,
                "<polyline class=\"l{i}\" stroke=\"{}\"{dash} points=\"{}\"><title>{}</title></polyline>",
                colour(i),
                many.join(" "),
                escape(&line.name)
            ),
        };
    }
}

fn is_dashed(i: usize) -> bool {
    i >= COLOURS.len()
}

fn colour(i: usize) -> &'static str {
    COLOURS[i % COLOURS.len()]
}

/// The next of 1, 2, 2.5, 5 times a power of ten.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .iter()
        .map(|step| step * power)
        .find(|top| *top >= value)
        .unwrap_or(value)
}

/// Without zeroes that say nothing.
fn number(value: f64) -> String {
    let text = match value {
        v if v >= 1e6 => return format!("{:.3e}", v),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.3}"),
        v => format!("{v:.6}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers() {
        assert_eq!(nice(9.3), 10.0);
        assert_eq!(nice(2.1), 2.5);
        assert_eq!(nice(100.0), 100.0);
        assert_eq!(number(2.50), "2.5");
        assert_eq!(number(0.0075), "0.0075");
        assert_eq!(number(100.0), "100");
    }

    #[test]
    fn only_what_is_not_zero() {
        let chart = Chart {
            title: "a<b",
            unit: "s",
            stop: 2.0,
            events: &[],
        };
        let line = |name: &str, value| Series {
            name: name.into(),
            points: vec![(0.0, 0.0), (1.0, value)],
        };
        assert_eq!(chart.draw(vec![line("x", 0.0)], 9), "");
        let svg = chart.draw(vec![line("x", 1.0), line("y", 2.0), line("z", 3.0)], 2);
        assert!(svg.contains("a&lt;b") && svg.contains("2 largest of 3") && !svg.contains(">x<"));
    }
}

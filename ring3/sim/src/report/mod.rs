// SPDX-License-Identifier: GPL-2.0
//! One HTML file about a simulation, which needs no other: its network, how its processes ended, and what its
//! connections, queues and interfaces did over time.

mod chart;
mod drawing;
mod tables;

use std::fmt::Write;

use crate::data::{self, Data};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::preempted::Preempted;
use crate::run::{Happening, Outcome, Outcomes};
use chart::{Chart, Series};
use tables::Table;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// More lines in one chart tell nothing; those with the largest values are shown.
const LINES: usize = 16;

/// Writes DATA/report.html.
pub fn write(plan: &Plan, outcomes: &Outcomes, scenario: &str) -> Result<()> {
    let data = Data::of(plan);
    let mut page =
        String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    let title = format!("Simulation of {}", escape(scenario));
    let _ = write!(
        page,
        "<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>"
    );
    let bad = outcomes
        .processes
        .iter()
        .filter(|process| !process.ok)
        .count();
    let _ =
        write!(
        page,
        "<p class=\"sum\">{} hosts, {:.3} s of virtual time, seed {}: <b class=\"{}\">{}</b></p>",
        plan.hosts.len(),
        outcomes.stop as f64 / 1e9,
        outcomes.seed,
        if bad == 0 { "ok" } else { "bad" },
        match bad {
            0 => "every process ended as expected".to_owned(),
            n => format!("{n} of {} processes did not end as expected", outcomes.processes.len()),
        }
    );
    page.push_str("<h2>Network</h2>");
    page.push_str(&drawing::draw(plan));
    charts(&data, outcomes, &mut page)?;
    processes(&outcomes.processes, &mut page);
    events(&outcomes.events, &mut page);
    preempted(&outcomes.preempted, &mut page);
    let _ = writeln!(page, "<script>{SCRIPT}</script></body></html>");
    data::write(&data.path("report.html"), &page)
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn charts(data: &Data, outcomes: &Outcomes, page: &mut String) -> Result<()> {
    let read = |name: &str| -> Result<Option<Table>> {
        let path = data.path(name);
        match path.exists() {
            true => {
                let text = std::fs::read_to_string(&path)
                    .map_err(Error::host(format!("read {}", path.display())))?;
                Ok(Some(Table::parse(&text)))
            }
            false => Ok(None),
        }
    };
    let stop = outcomes.stop as f64 / 1e9;
    let mut add = |title: &str, unit: &str, series: Vec<Series>| {
        let chart = Chart {
            title,
            unit,
            stop,
            events: &outcomes.events,
        };
        page.push_str(&chart.draw(series, LINES));
    };
    let (Some(interfaces), Some(tcp), Some(queues)) = (
        read("interfaces.csv")?,
        read("tcp.csv")?,
        read("queues.csv")?,
    ) else {
        page.push_str("<p>Nothing was sampled: <code>heartbeat_interval</code> is null.</p>");
        return Ok(());
    };
    // Loopback and the inner ends of links say nothing that the hosts' interfaces do not.
    let outer = interfaces.filter(|row| row[2] != "lo" && !row[1].starts_with('_'));
    let name = ["host", "interface"];
    add(
        "Sent by interfaces",
        "Mbit/s",
        outer.rates(&name, "tx_bytes", 8e-6),
    );
    add(
        "Received by interfaces",
        "Mbit/s",
        outer.rates(&name, "rx_bytes", 8e-6),
    );
    let name = ["host", "local", "remote", "congestion"];
    // Who only receives has a window that says nothing.
    let senders = tcp.senders("bytes_acked", &name);
    add(
        "Acknowledged to senders of TCP",
        "Mbit/s",
        senders.rates(&name, "bytes_acked", 8e-6),
    );
    add(
        "Congestion windows",
        "packets",
        senders.values(&name, "cwnd", 1.0),
    );
    add(
        "Smoothed round-trip times",
        "ms",
        senders.known("rtt_us").values(&name, "rtt_us", 1e-3),
    );
    add(
        "Retransmitted",
        "packets",
        senders.values(&name, "retransmits", 1.0),
    );
    let name = ["host", "interface", "qdisc", "handle"];
    // A netem's packets are on their way; they do not wait.
    let waiting = queues.filter(|row| row[3] != "netem" && row[3] != "clsact");
    add(
        "Waiting in queues",
        "KiB",
        waiting.values(&name, "waiting_bytes", 1.0 / 1024.0),
    );
    add(
        "Dropped by queues and lost on links",
        "packets",
        queues.values(&name, "drops", 1.0),
    );
    Ok(())
}

fn processes(list: &[Outcome], page: &mut String) {
    page.push_str(
        "<h2>Processes</h2><table><tr><th>Host<th>Process<th>Started<th>Ended<th>State<th>Expected</tr>",
    );
    let time = |time: Option<u64>| match time {
        Some(at) => format!("{:.6} s", at as f64 / 1e9),
        None => String::new(),
    };
    for process in list {
        let _ = write!(
            page,
            "<tr class=\"{}\"><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td>{}<td>{}</tr>",
            if process.ok { "ok" } else { "bad" },
            escape(&process.host),
            escape(&process.process),
            time(process.started),
            time(process.ended),
            escape(&process.state),
            escape(&process.expected)
        );
    }
    page.push_str("</table>");
}

fn events(list: &[Happening], page: &mut String) {
    if list.is_empty() {
        return;
    }
    page.push_str("<h2>Events</h2><table><tr><th>Time<th>What</tr>");
    for event in list {
        let _ = write!(
            page,
            "<tr><td class=\"n\">{:.6} s<td>{}</tr>",
            event.at as f64 / 1e9,
            escape(&event.what)
        );
    }
    page.push_str("</table>");
}

fn preempted(list: &[Preempted], page: &mut String) {
    if list.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Preempted while they computed</h2><p>Where a program is at such a moment depends on the machine. So another run of this \
         seed may differ, from the first of these times on.</p><table><tr><th>Host<th>Program<th>Process<th>First<th>Times</tr>",
    );
    for one in list {
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{:.6} s<td class=\"n\">{}</tr>",
            escape(&one.host),
            escape(&one.program),
            one.process,
            one.first as f64 / 1e9,
            one.count
        );
    }
    page.push_str("</table>");
}

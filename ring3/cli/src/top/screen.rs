// SPDX-License-Identifier: GPL-2.0
//! The screen of `ring3 top`. A thread looks at the nodes, so that one that does not answer keeps no key waiting.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row as Cells, Table, TableState};
use ratatui::Frame;

use crate::error::{Failure, Result};

use super::look::{Row, Sort, Watch};
use super::EVERY_MIN;

/// How often keys are looked for.
const TURN: Duration = Duration::from_millis(50);
/// Lines about the node that is chosen.
const ABOUT: u16 = 9;
const KEYS: &str = "q quit  up/down choose  s sort  p pause";

/// Least and most columns of a node's name.
const NAME: (usize, usize) = (14, 32);
/// Columns of the figures behind it, as [`Row::HEAD`] has them.
const FIGURES: [u16; 12] = [8, 7, 6, 9, 8, 10, 9, 7, 7, 8, 7, 6];

/// Columns of a name, and of as many figures behind it as there is room for, each after a space. A name is cut only
/// where not even its state would fit.
fn widths(name: u16, room: u16) -> Vec<u16> {
    let mut used = name;
    let fits = FIGURES.into_iter().take_while(|width| {
        used += 1 + width;
        used <= room
    });
    std::iter::once(name.min(room)).chain(fits).collect()
}

/// The state of the screen.
#[derive(Debug)]
pub struct View {
    rows: Vec<Row>,
    sort: Sort,
    paused: bool,
    chosen: TableState,
    trouble: Option<String>,
}

/// The action that a key asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Act {
    Stay,
    Quit,
}

/// Signals that end the screen; the terminal is restored first.
const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

fn signals() -> nix::Result<SignalFd> {
    let set: SigSet = ENDING.into_iter().collect();
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

pub fn show(every: Duration) -> Result<()> {
    // Before there is a thread, which inherits it.
    let signals = signals().map_err(|why| Failure::host("watch for signals")(why.into()))?;
    let looks = look_on(every)?;
    let mut terminal = ratatui::try_init().map_err(Failure::host("use the terminal"))?;
    let done = run(&mut terminal, &looks, &signals);
    let restored = ratatui::try_restore().map_err(Failure::host("give the terminal back"));
    done.and(restored)
}

fn look_on(every: Duration) -> Result<Receiver<Result<Vec<Row>>>> {
    let (tell, looks) = mpsc::sync_channel(1);
    let mut watch = Watch::start()?;
    std::thread::Builder::new()
        .name("ring3-look".into())
        .spawn(move || {
            // The first rates soon, the others as asked. CPU times move in steps of 10 ms, and say nothing over less.
            std::thread::sleep(EVERY_MIN);
            while tell.send(watch.look()).is_ok() {
                std::thread::sleep(every);
            }
        })
        .map_err(Failure::host("start a thread"))?;
    Ok(looks)
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    looks: &Receiver<Result<Vec<Row>>>,
    signals: &SignalFd,
) -> Result<()> {
    let fail = || Failure::host("use the terminal");
    let mut view = View::new();
    loop {
        if let Ok(Some(_)) = signals.read_signal() {
            return Ok(());
        }
        terminal.draw(|frame| view.draw(frame)).map_err(fail())?;
        if event::poll(TURN).map_err(fail())? {
            if let Event::Key(key) = event::read().map_err(fail())? {
                let is_press = key.kind != KeyEventKind::Release;
                if is_press && view.on_key(key.code, key.modifiers) == Act::Quit {
                    return Ok(());
                }
            }
        }
        match looks.recv_timeout(Duration::ZERO) {
            Ok(found) => view.take(found),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

impl View {
    pub fn new() -> View {
        View {
            rows: Vec::new(),
            sort: Sort::Name,
            paused: false,
            chosen: TableState::default().with_selected(Some(0)),
            trouble: None,
        }
    }

    pub fn take(&mut self, found: Result<Vec<Row>>) {
        if self.paused {
            return;
        }
        match found {
            Ok(rows) => {
                let name = self.chosen().map(|row| row.name.clone());
                self.rows = rows;
                self.sort.apply(&mut self.rows);
                self.choose(name);
                self.trouble = None;
            }
            Err(why) => self.trouble = Some(why.to_string()),
        }
    }

    /// Stays with the node that was chosen.
    fn choose(&mut self, name: Option<String>) {
        let at = name.and_then(|name| self.rows.iter().position(|row| row.name == name));
        let last = self.rows.len().saturating_sub(1);
        let at = at.unwrap_or(self.chosen.selected().unwrap_or(0).min(last));
        self.chosen.select(Some(at));
    }

    fn chosen(&self) -> Option<&Row> {
        self.rows.get(self.chosen.selected()?)
    }

    pub fn on_key(&mut self, key: KeyCode, with: KeyModifiers) -> Act {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Act::Quit,
            KeyCode::Char('c') if with.contains(KeyModifiers::CONTROL) => return Act::Quit,
            KeyCode::Down | KeyCode::Char('j') => {
                let last = self.rows.len().saturating_sub(1);
                let next = self.chosen.selected().map_or(0, |at| (at + 1).min(last));
                self.chosen.select(Some(next));
            }
            KeyCode::Up | KeyCode::Char('k') => {
                let next = self.chosen.selected().map_or(0, |at| at.saturating_sub(1));
                self.chosen.select(Some(next));
            }
            KeyCode::Char('s') => {
                let name = self.chosen().map(|row| row.name.clone());
                self.sort = self.sort.next();
                self.sort.apply(&mut self.rows);
                self.choose(name);
            }
            KeyCode::Char('p') => self.paused = !self.paused,
            _ => {}
        }
        Act::Stay
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let parts = [
            Constraint::Length(1),
            Constraint::Min(2),
            Constraint::Length(ABOUT),
            Constraint::Length(1),
        ];
        let [head, list, about, keys] = Layout::vertical(parts).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        self.draw_list(frame, list);
        self.draw_about(frame, about);
        frame.render_widget(Paragraph::new(KEYS).style(Style::new().dim()), keys);
    }

    fn head(&self) -> Line<'static> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let cpu: f64 = self.rows.iter().map(|row| row.cpu).sum();
        let mut words = vec![
            Span::styled("ring3 top", bold),
            Span::raw(format!(
                "  {} nodes, {cpu:.1} % CPU, by {}",
                self.rows.len(),
                self.sort.word()
            )),
        ];
        if self.paused {
            words.push(Span::styled("  paused", Style::new().fg(Color::Yellow)));
        }
        if let Some(trouble) = &self.trouble {
            words.push(Span::styled(
                format!("  {trouble}"),
                Style::new().fg(Color::Red),
            ));
        }
        Line::from(words)
    }

    fn draw_list(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let longest = self.rows.iter().map(|row| row.name.chars().count()).max();
        let name = longest.unwrap_or(0).clamp(NAME.0, NAME.1) as u16;
        let widths = widths(name, area.width);
        let rows = self.rows.iter().map(|row| {
            let colour = match row.state.as_str() {
                "up" => Style::new(),
                "booting" | "down" => Style::new().fg(Color::Yellow),
                _ => Style::new().fg(Color::Red),
            };
            Cells::new(row.cells()).style(colour)
        });
        let table = Table::new(rows, widths.into_iter().map(Constraint::Length))
            .header(Cells::new(Row::HEAD).style(Style::new().add_modifier(Modifier::BOLD)))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, area, &mut self.chosen);
    }

    /// The chosen node's ports and programs.
    fn draw_about(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(row) = self.chosen() else {
            let block = Block::new().borders(Borders::TOP).title(" no node is up ");
            frame.render_widget(block, area);
            return;
        };
        let mut lines = Vec::new();
        match &row.status {
            None => lines.extend(row.why.clone().map(Line::from)),
            Some(status) => {
                lines.extend(status.poison.clone().map(Line::from));
                lines.extend(status.ports.iter().map(|port| {
                    let name = port
                        .name
                        .as_ref()
                        .map_or(String::new(), |name| format!(":{name}"));
                    let addrs = port.addrs.join(" ");
                    let peer = port
                        .peer
                        .as_ref()
                        .map_or(String::new(), |it| format!("  to {it}"));
                    Line::from(format!(
                        "port {} {}{name}  {addrs}{peer}",
                        port.ifname, port.kind
                    ))
                }));
                let programs = status.procs.iter().map(|proc| proc.pid.to_string());
                let programs: Vec<String> = programs.collect();
                lines.push(Line::from(format!("programs {}", programs.join(" "))));
            }
        }
        let title = format!(" {} ", row.name);
        let block = Block::new().borders(Borders::TOP).title(title);
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::look::tests::row;
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    fn seen(view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 20)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let cells: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        let lines = cells.chunks(width).map(|line| line.concat());
        lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }

    #[test]
    fn what_keys_do() {
        let mut view = View::new();
        assert!(seen(&mut view).contains("no node is up"));
        view.take(Ok(vec![row("web", 5.0), row("db", 1.0)]));
        assert_eq!(view.chosen().unwrap().name, "db");
        let press = |view: &mut View, key| view.on_key(key, KeyModifiers::NONE);
        press(&mut view, KeyCode::Down);
        press(&mut view, KeyCode::Down);
        assert_eq!(view.chosen().unwrap().name, "web");
        let screen = seen(&mut view);
        for words in [
            "2 nodes, 6.0 % CPU, by name",
            "NODE",
            "IN Mbit/s",
            " web ",
            KEYS,
        ] {
            assert!(screen.contains(words), "{words} in\n{screen}");
        }
        // The node stays chosen, wherever it goes.
        view.take(Ok(vec![row("a", 0.0), row("web", 5.0), row("z", 1.0)]));
        assert_eq!(view.chosen().unwrap().name, "web");
        press(&mut view, KeyCode::Char('p'));
        view.take(Ok(Vec::new()));
        assert_eq!(view.rows.len(), 3);
        assert!(seen(&mut view).contains("paused"));
        assert_eq!(press(&mut view, KeyCode::Char('q')), Act::Quit);
        let control = KeyModifiers::CONTROL;
        assert_eq!(view.on_key(KeyCode::Char('c'), control), Act::Quit);
    }

    /// Figures go before names are cut.
    #[test]
    fn a_narrow_screen_shows_whole_names() {
        let long = "a-node-of-quite-a-name-2";
        let mut view = View::new();
        view.take(Ok(vec![row(long, 5.0)]));
        let mut terminal = Terminal::new(TestBackend::new(70, 20)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let text: String = terminal
            .backend()
            .buffer()
            .content
            .iter()
            .map(|cell| cell.symbol())
            .collect();
        for words in [&format!("{long} up "), "IN Mbit/s"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert!(!text.contains("MiB"), "{text}");
    }

    #[test]
    fn a_small_screen_is_no_trouble() {
        let mut view = View::new();
        view.take(Ok(vec![row("web", 5.0)]));
        for (width, height) in [(1, 1), (10, 3), (40, 12)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| view.draw(frame)).unwrap();
        }
    }
}

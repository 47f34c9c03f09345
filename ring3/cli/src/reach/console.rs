// SPDX-License-Identifier: GPL-2.0
//! `ring3 console`: the files of a node's kernel, for somebody who looks around: /proc/net, /proc/sys/net, /sys/class/net.
//!
//! It runs on the node (`ring3 on-node console`), so that these paths are the node's. Other paths would be the host's; there
//! are none here. On a terminal it has history and completion; else it reads commands from standard input, one a line, and
//! ends with 1 if any failed.

use std::io::{BufRead, IsTerminal};
use std::path::{Component, Path, PathBuf};

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Context, Editor, Helper, Highlighter, Hinter, Validator};

use crate::error::{Failure, Result};
use crate::say;

/// Directories below which everything is the node's (gate/path/path.c).
const ROOTS: [&str; 4] = [
    "/proc/net",
    "/proc/sys/net",
    "/sys/class/net",
    "/sys/devices/virtual/net",
];
const HELP: &str = "\
ls [PATH]           what is there
cat PATH...         what it says
echo WORDS > PATH   write to it
cd [PATH]           go there; without one: to /
pwd                 where this is
help                this list
exit                the end, as is ^D
";

/// Runs until the end of the input. The status: 1 if a command failed that nobody saw fail.
pub fn run(node: &str) -> Result<u8> {
    let mut console = Console {
        at: PathBuf::from("/"),
    };
    match std::io::stdin().is_terminal() {
        true => console.talk(node),
        false => console.obey(std::io::stdin().lock()),
    }
}

#[derive(Debug)]
struct Console {
    at: PathBuf,
}

/// A line that was typed.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Nothing,
    Ls(Option<String>),
    Cat(Vec<String>),
    Echo(String, String),
    Cd(Option<String>),
    Pwd,
    Help,
    Exit,
}

fn parse(line: &str) -> Result<Command, String> {
    let (line, target) = match line.split_once('>') {
        Some((line, target)) => (line, Some(target)),
        None => (line, None),
    };
    let split = |text: &str| shell_words::split(text).map_err(|why| why.to_string());
    let words = split(line)?;
    let target = target.map(split).transpose()?;
    let Some((verb, words)) = words.split_first() else {
        return match target {
            None => Ok(Command::Nothing),
            Some(_) => Err("nothing to write: echo WORDS > PATH".into()),
        };
    };
    if let Some(target) = target {
        return match (verb.as_str(), &target[..]) {
            ("echo", [path]) => Ok(Command::Echo(words.join(" "), path.clone())),
            ("echo", _) => Err("echo writes to one path: echo WORDS > PATH".into()),
            _ => Err("only echo writes: echo WORDS > PATH".into()),
        };
    }
    let at_most_one = || match words {
        [] => Ok(None),
        [path] => Ok(Some(path.clone())),
        _ => Err(format!("{verb} takes one path")),
    };
    match (verb.as_str(), words) {
        ("ls", _) => Ok(Command::Ls(at_most_one()?)),
        ("cat", []) => Err("cat needs a path".into()),
        ("cat", paths) => Ok(Command::Cat(paths.to_vec())),
        ("cd", _) => Ok(Command::Cd(at_most_one()?)),
        ("echo", _) => Err("where to? echo WORDS > PATH".into()),
        ("pwd", []) => Ok(Command::Pwd),
        ("help" | "?", []) => Ok(Command::Help),
        ("exit" | "quit", []) => Ok(Command::Exit),
        ("pwd" | "help" | "exit" | "quit", _) => Err(format!("{verb} takes no words")),
        _ => Err(format!("no command `{verb}`: `help` lists them")),
    }
}

/// A path, as this console takes it.
#[derive(Debug, PartialEq, Eq)]
enum Whose {
    Node,
    /// A folder on the way to some: these are in it.
    Way(Vec<String>),
    Host,
}

fn whose(path: &Path) -> Whose {
    if ROOTS.iter().any(|root| path.starts_with(root)) {
        return Whose::Node;
    }
    let mut names: Vec<String> = ROOTS
        .iter()
        .filter_map(|root| Path::new(root).strip_prefix(path).ok())
        .filter_map(|rest| Some(rest.iter().next()?.to_str()?.to_owned()))
        .collect();
    names.dedup();
    match names.is_empty() {
        true => Whose::Host,
        false => Whose::Way(names),
    }
}

/// `path` as seen from `at`, without `.` and `..`.
fn resolve(at: &Path, path: &str) -> PathBuf {
    let mut whole = PathBuf::from("/");
    for part in at.join(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::Normal(name) => whole.push(name),
            _ => {}
        }
    }
    whole
}

type Said<T> = std::result::Result<T, String>;

fn list(path: &Path) -> Said<Vec<String>> {
    let fail = |why: std::io::Error| format!("{}: {why}", path.display());
    match whose(path) {
        Whose::Host => Err(not_here(path)),
        Whose::Way(names) => Ok(names.into_iter().map(|name| name + "/").collect()),
        Whose::Node => {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(path).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let is_folder = entry.path().is_dir();
                let name = entry.file_name().to_string_lossy().into_owned();
                names.push(if is_folder { name + "/" } else { name });
            }
            names.sort();
            Ok(names)
        }
    }
}

fn not_here(path: &Path) -> String {
    format!(
        "{}: not the node's: see {}",
        path.display(),
        ROOTS.join(", ")
    )
}

fn only_of_node(path: &Path) -> Said<()> {
    match whose(path) {
        Whose::Node => Ok(()),
        Whose::Way(_) => Err(format!("{}: a folder", path.display())),
        Whose::Host => Err(not_here(path)),
    }
}

impl Console {
    /// Carries out one line; its output, or `None` at the end.
    fn act(&mut self, line: &str) -> Said<Option<Vec<u8>>> {
        let there = |path: &Option<String>, at: &Path| resolve(at, path.as_deref().unwrap_or("."));
        let said = match parse(line)? {
            Command::Nothing => Vec::new(),
            Command::Exit => return Ok(None),
            Command::Help => HELP.into(),
            Command::Pwd => format!("{}\n", self.at.display()).into(),
            Command::Ls(path) => {
                let path = there(&path, &self.at);
                let names = match path.is_file() && whose(&path) == Whose::Node {
                    true => vec![path.display().to_string()],
                    false => list(&path)?,
                };
                names
                    .into_iter()
                    .flat_map(|name| (name + "\n").into_bytes())
                    .collect()
            }
            Command::Cat(paths) => {
                let mut all = Vec::new();
                for path in paths {
                    let path = resolve(&self.at, &path);
                    only_of_node(&path)?;
                    let text = std::fs::read(&path);
                    all.extend(text.map_err(|why| format!("{}: {why}", path.display()))?);
                }
                all
            }
            Command::Echo(words, path) => {
                let path = resolve(&self.at, &path);
                only_of_node(&path)?;
                let mut options = std::fs::OpenOptions::new();
                let file = options.write(true).open(&path);
                file.and_then(|mut file| {
                    std::io::Write::write_all(&mut file, (words + "\n").as_bytes())
                })
                .map_err(|why| format!("{}: {why}", path.display()))?;
                Vec::new()
            }
            Command::Cd(path) => {
                let path = path.map_or("/".into(), |path| resolve(&self.at, &path));
                list(&path)?;
                self.at = path;
                Vec::new()
            }
        };
        Ok(Some(said))
    }

    fn obey(&mut self, input: impl BufRead) -> Result<u8> {
        let mut status = 0;
        for line in input.lines() {
            let line = line.map_err(Failure::host("read standard input"))?;
            match self.act(&line) {
                Ok(None) => break,
                Ok(Some(text)) => say::print(text)?,
                Err(why) => {
                    say::complain(why);
                    status = 1;
                }
            }
        }
        Ok(status)
    }

    fn talk(&mut self, node: &str) -> Result<u8> {
        let fail =
            |why: ReadlineError| Failure::host("use the terminal")(std::io::Error::other(why));
        let mut editor = Editor::<Paths, DefaultHistory>::new().map_err(fail)?;
        let history = history();
        if let Some(path) = &history {
            // There is none the first time.
            let _ = editor.load_history(path);
        }
        loop {
            editor.set_helper(Some(Paths(self.at.clone())));
            match editor.readline(&format!("{node}:{}> ", self.at.display())) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    match self.act(&line) {
                        Ok(None) => break,
                        Ok(Some(text)) => say::print(text)?,
                        Err(why) => say::complain(why),
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(why) => return Err(fail(why)),
            }
        }
        if let Some(path) = &history {
            let kept = path.parent().map(std::fs::create_dir_all).transpose();
            if kept.is_err() || editor.save_history(path).is_err() {
                say::complain(format_args!(
                    "the history is not kept: {} can't be written",
                    path.display()
                ));
            }
        }
        Ok(0)
    }
}

/// Where the XDG Base Directory Specification has a program's history.
fn history() -> Option<PathBuf> {
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.filter(|path| path.is_absolute()).or_else(home)?;
    Some(state.join("ring3/console_history"))
}

/// Completes commands and the node's paths, as seen from this folder.
#[derive(Helper, Hinter, Highlighter, Validator)]
struct Paths(PathBuf);

impl Completer for Paths {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = complete(&self.0, &line[..at]);
        let pairs = found.into_iter().map(|it| Pair {
            display: it.clone(),
            replacement: it,
        });
        Ok((start, pairs.collect()))
    }
}

/// Where the word begins that is typed, and what it may become.
fn complete(at: &Path, line: &str) -> (usize, Vec<String>) {
    const VERBS: [&str; 7] = ["ls", "cat", "echo", "cd", "pwd", "help", "exit"];
    let start = line.rfind([' ', '>']).map_or(0, |at| at + 1);
    let word = &line[start..];
    let is_first = line[..start].trim().is_empty();
    if is_first {
        let verbs = VERBS.iter().filter(|verb| verb.starts_with(word));
        return (start, verbs.map(|verb| format!("{verb} ")).collect());
    }
    let (folder, name) = match word.rfind('/') {
        Some(slash) => word.split_at(slash + 1),
        None => ("", word),
    };
    let names =
        list(&resolve(at, if folder.is_empty() { "." } else { folder })).unwrap_or_default();
    let fitting = names.into_iter().filter(|it| it.starts_with(name));
    (start, fitting.map(|it| format!("{folder}{it}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let text = |text: &str| text.to_owned();
        assert_eq!(parse("  "), Ok(Command::Nothing));
        assert_eq!(parse("ls"), Ok(Command::Ls(None)));
        assert_eq!(
            parse("cat a 'b c'"),
            Ok(Command::Cat(vec![text("a"), text("b c")]))
        );
        let echo = Command::Echo(text("4096 87380 6291456"), text("tcp_rmem"));
        assert_eq!(parse("echo 4096 87380 6291456 >tcp_rmem"), Ok(echo));
        for wrong in [
            "ls a b",
            "cat",
            "echo 1",
            "> x",
            "cat a > b",
            "echo 1 > a b",
            "rm x",
            "ls 'a",
            "pwd x",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_host_s_files_are_not_here() {
        assert_eq!(whose(Path::new("/proc/sys/net/ipv4")), Whose::Node);
        assert_eq!(
            whose(Path::new("/proc")),
            Whose::Way(vec!["net".into(), "sys".into()])
        );
        for path in [
            "/etc/passwd",
            "/proc/self",
            "/proc/network",
            "/proc/sys/kernel",
        ] {
            assert_eq!(whose(Path::new(path)), Whose::Host, "{path}");
        }
        let at = Path::new("/proc/sys/net");
        assert_eq!(resolve(at, "../../net/../../etc"), Path::new("/etc"));
        assert_eq!(resolve(at, "/.."), Path::new("/"));
        let mut console = Console { at: "/".into() };
        assert!(console
            .act("cat /etc/passwd")
            .unwrap_err()
            .contains("not the node's"));
        assert!(console
            .act("echo 1 > /proc/sys/net/../kernel/panic")
            .is_err());
        assert!(console.act("cd /tmp").is_err());
        assert_eq!(console.act("ls").unwrap().unwrap(), b"proc/\nsys/\n");
        console.act("cd proc/sys").unwrap();
        assert_eq!(console.act("pwd").unwrap().unwrap(), b"/proc/sys\n");
        assert_eq!(console.act("exit"), Ok(None));
    }

    #[test]
    fn what_a_word_may_become() {
        let root = Path::new("/");
        assert_eq!(complete(root, "c"), (0, vec!["cat ".into(), "cd ".into()]));
        assert_eq!(complete(root, "cat /pr"), (4, vec!["/proc/".into()]));
        assert_eq!(
            complete(root, "echo 1 >proc/s"),
            (8, vec!["proc/sys/".into()])
        );
        assert_eq!(complete(root, "cat /etc/pas").1, Vec::<String>::new());
    }
}

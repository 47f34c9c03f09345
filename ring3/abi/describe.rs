// SPDX-License-Identifier: GPL-2.0
//! Reads include/ring3.abi. A description that leaves something open is an error: a field without writer or reader, a
//! number that two calls have, a contract's number that is not where every other version has it.

use std::collections::BTreeMap;

/// Where every version of the contract has its number, behind the magic number.
const ABI_AT: u64 = 8;

/// In the description, in C, in Rust; bytes.
pub const TYPES: &[(&str, &str, &str, u64)] = &[
    ("char", "char", "u8", 1),
    ("u8", "r3_u8", "u8", 1),
    ("u32", "r3_u32", "u32", 4),
    ("s32", "r3_s32", "i32", 4),
    ("u64", "r3_u64", "u64", 8),
    ("s64", "r3_s64", "i64", 8),
    ("a32", "r3_a32", "core::sync::atomic::AtomicU32", 4),
    ("as32", "r3_as32", "core::sync::atomic::AtomicI32", 4),
    ("a64", "r3_a64", "core::sync::atomic::AtomicU64", 8),
];

#[derive(Default)]
pub struct Contract {
    pub files: Vec<File>,
    /// RING3_ABI: a hash of all of it but the text.
    pub number: u32,
    /// Numbers of constants.
    pub values: BTreeMap<String, u64>,
    pub structs: BTreeMap<String, Struct>,
}

#[derive(Default)]
pub struct File {
    pub name: String,
    pub title: String,
    pub text: Vec<String>,
    pub items: Vec<Item>,
}

/// An item, and the text before it.
pub struct Item {
    pub text: Vec<String>,
    pub what: What,
}

pub enum What {
    Const(Const),
    /// Name, argument, value of type u32.
    Macro(String, String, String),
    Enum(String, Vec<Const>),
    Struct(String),
}

pub struct Const {
    pub ty: String,
    pub name: String,
    pub value: String,
    pub note: String,
}

#[derive(Clone, Default)]
pub struct Struct {
    pub fields: Vec<Field>,
    pub size: u64,
    pub align: u64,
    /// Other threads write to it at the same time.
    pub atomic: bool,
    /// Who writes and who reads all of it.
    roles: String,
}

#[derive(Clone)]
pub struct Field {
    pub name: String,
    pub ty: String,
    pub count: Option<(String, u64)>,
    /// More than the type asks for.
    pub align: Option<u64>,
    pub offset: u64,
    /// The note; who writes and who reads it.
    pub note: String,
}

/// Splits off the first word.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

impl Contract {
    pub fn read(text: &str, lock: &str) -> Self {
        let mut contract = Self::default();
        let mut hashed = without_comments(lock);
        let (mut before, mut head) = (Vec::new(), false);
        for (number, line) in text.lines().enumerate() {
            let at = format!("include/ring3.abi:{}", number + 1);
            if line.is_empty() || line.starts_with('#') {
                head = false;
            } else if let Some(text) = line.strip_prefix('|') {
                let text = text.strip_prefix(' ').unwrap_or(text).to_string();
                match contract.files.last_mut() {
                    Some(file) if head => file.text.push(text),
                    _ => before.push(text),
                }
            } else {
                let (line, note) = line.split_once('#').unwrap_or((line, ""));
                hashed.push_str(line);
                hashed.push('\n');
                let (kind, rest) = word(line);
                head = kind == "file";
                if head {
                    let (name, title) = word(rest);
                    let (name, title) = (name.into(), title.into());
                    contract.files.push(File {
                        name,
                        title,
                        ..File::default()
                    });
                } else if line.starts_with('\t') {
                    contract.inner(line.trim(), note.trim(), &at);
                } else {
                    let what = contract.item(kind, rest, note.trim(), &mut before, &at);
                    let text = std::mem::take(&mut before);
                    let file = contract.files.last_mut();
                    file.unwrap_or_else(|| panic!("{at}: in which file?"))
                        .items
                        .push(Item { text, what });
                }
            }
        }
        contract.check();
        contract.number = hash(&hashed);
        contract
    }

    fn item(
        &mut self,
        kind: &str,
        rest: &str,
        note: &str,
        text: &mut Vec<String>,
        at: &str,
    ) -> What {
        let (name, after) = word(rest);
        match kind {
            "const" => {
                let (name, value) = after
                    .split_once('=')
                    .unwrap_or_else(|| panic!("{at}: no value"));
                What::Const(self.constant(word(rest).0, name, value, note, at))
            }
            "macro" => {
                let parts = rest.split_once('=').and_then(|(head, value)| {
                    let (name, argument) = head.trim().strip_suffix(')')?.split_once('(')?;
                    Some(What::Macro(
                        name.into(),
                        argument.into(),
                        value.trim().into(),
                    ))
                });
                parts.unwrap_or_else(|| panic!("{at}: macro NAME(ARGUMENT) = VALUE"))
            }
            "call" => {
                let parts = rest.split_once(" = ").and_then(|(call, rest)| {
                    let (number, by) = rest.split_once(" by ")?;
                    Some((call, call.split_once('(')?.0, number, by))
                });
                let (call, name, number, by) = parts
                    .unwrap_or_else(|| panic!("{at}: call NAME(ARGUMENTS) = NUMBER by CALLERS"));
                text.insert(0, format!("{call}, made by: {by}."));
                What::Const(self.constant("long", &format!("RING3_NR_{name}"), number, note, at))
            }
            "enum" => What::Enum(name.into(), Vec::new()),
            "struct" => {
                let roles = after.to_string();
                let new = Struct {
                    align: 1,
                    roles,
                    ..Struct::default()
                };
                assert!(
                    self.structs.insert(name.into(), new).is_none(),
                    "{at}: a second {name}"
                );
                What::Struct(name.into())
            }
            other => panic!("{at}: what is '{other}'?"),
        }
    }

    fn constant(&mut self, ty: &str, name: &str, value: &str, note: &str, at: &str) -> Const {
        let (name, value) = (name.trim(), value.trim());
        if ty != "str" {
            let number = self.evaluate(value, at);
            assert!(
                self.values.insert(name.into(), number).is_none(),
                "{at}: a second {name}"
            );
        }
        Const {
            ty: ty.into(),
            name: name.into(),
            value: value.into(),
            note: note.into(),
        }
    }

    /// A value of an enum, or a field.
    fn inner(&mut self, line: &str, note: &str, at: &str) {
        let item = self.files.last_mut().and_then(|file| file.items.pop());
        let mut item = item.unwrap_or_else(|| panic!("{at}: of what?"));
        match &mut item.what {
            What::Enum(_, values) => {
                let (name, value) = line
                    .split_once('=')
                    .unwrap_or_else(|| panic!("{at}: no value"));
                values.push(self.constant("u32", name, value, note, at));
            }
            What::Struct(name) => {
                let mut whole = self.structs.remove(name).unwrap_or_default();
                self.field(&mut whole, line, note, at);
                self.structs.insert(name.clone(), whole);
            }
            _ => panic!("{at}: of what?"),
        }
        self.files
            .last_mut()
            .expect("it was there")
            .items
            .push(item);
    }

    fn field(&self, whole: &mut Struct, line: &str, note: &str, at: &str) {
        let (ty, rest) = word(line.strip_prefix("struct ").unwrap_or(line));
        let (name, rest) = match rest.split_once(']') {
            Some((name, rest)) if !word(rest).0.contains('[') && name.contains('[') => (name, rest),
            _ => word(rest),
        };
        let (name, count) = match name.split_once('[') {
            Some((name, n)) => (name, Some((n.to_string(), self.evaluate(n, at)))),
            None => (name, None),
        };
        let mut roles = rest.trim();
        let mut align = None;
        if let Some(rest) = roles.strip_prefix("align ") {
            let (n, rest) = word(rest);
            (align, roles) = (Some(self.evaluate(n, at)), rest);
        }
        let told = if roles.is_empty() {
            &whole.roles
        } else {
            roles
        };
        let complete = told.starts_with("WR ") || told.starts_with("W ") && told.contains("; R ");
        assert!(complete, "{at}: {name}: who writes it, who reads it?");
        let (size, own_align, atomic) = self.layout(ty, at);
        let wanted = own_align.max(align.unwrap_or(1));
        let offset = whole.size.next_multiple_of(wanted);
        whole.align = whole.align.max(wanted);
        whole.atomic |= atomic;
        whole.size = offset + size * count.as_ref().map_or(1, |(_, n)| *n);
        let note = [note, roles].join(if note.is_empty() || roles.is_empty() {
            ""
        } else {
            ". "
        });
        whole.fields.push(Field {
            name: name.into(),
            ty: ty.into(),
            count,
            align,
            offset,
            note,
        });
    }

    /// Size, alignment, and whether other threads write it at the same time.
    pub fn layout(&self, ty: &str, at: &str) -> (u64, u64, bool) {
        if let Some((.., rust, size)) = TYPES.iter().find(|(name, ..)| *name == ty) {
            return (*size, *size, rust.contains("Atomic"));
        }
        let found = self
            .structs
            .get(ty)
            .unwrap_or_else(|| panic!("{at}: no type '{ty}'"));
        (
            found.size.next_multiple_of(found.align),
            found.align,
            found.atomic,
        )
    }

    fn check(&mut self) {
        for (name, whole) in &mut self.structs {
            whole.size = whole.size.next_multiple_of(whole.align);
            for field in whole.fields.iter().filter(|field| field.name == "abi") {
                assert!(
                    field.offset == ABI_AT,
                    "{name}.abi is where no other version looks for it"
                );
            }
        }
        let mut numbers: Vec<_> = self.calls().collect();
        numbers.sort_unstable();
        let wanted: Vec<_> = (self.values["RING3_NR_BASE"]..)
            .take(numbers.len())
            .collect();
        assert!(
            numbers == wanted,
            "calls are numbered from RING3_NR_BASE on, each with one number"
        );
        self.values.insert(
            "RING3_NR_MAX".into(),
            wanted.len() as u64 + self.values["RING3_NR_BASE"],
        );
    }

    fn calls(&self) -> impl Iterator<Item = u64> + '_ {
        let call = |name: &String| name.starts_with("RING3_NR_") && name != "RING3_NR_BASE";
        self.values
            .iter()
            .filter(move |(name, _)| call(name))
            .map(|(_, number)| *number)
    }

    fn evaluate(&self, text: &str, at: &str) -> u64 {
        let mut parser = Parser {
            contract: self,
            text: text.trim(),
            at,
        };
        let value = parser.shift();
        assert!(
            parser.text.is_empty(),
            "{at}: what is '{}' in '{text}'?",
            parser.text
        );
        value
    }
}

/// FNV-1a: it tells contracts apart, and nobody gains by making two alike.
fn hash(text: &str) -> u32 {
    text.split_whitespace()
        .flat_map(|word| word.bytes().chain([b' ']))
        .fold(0x811c_9dc5, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut out = parts.next().unwrap_or_default().to_string();
    parts.for_each(|part| out.push_str(part.split_once("*/").expect("a comment ends").1));
    out
}

/// C's integer expressions: `<<`, `|` lowest (one of them at a time), then sums, then products.
struct Parser<'a> {
    contract: &'a Contract,
    text: &'a str,
    at: &'a str,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let found = self.text.strip_prefix(token);
        self.text = found.unwrap_or(self.text).trim_start();
        found.is_some()
    }

    fn shift(&mut self) -> u64 {
        let mut value = self.sum();
        loop {
            value = match () {
                () if self.eat("<<") => value << self.sum(),
                () if self.eat("|") => value | self.sum(),
                () => return value,
            }
        }
    }

    fn sum(&mut self) -> u64 {
        let mut value = self.product();
        loop {
            value = match () {
                () if self.eat("+") => value + self.product(),
                () if self.eat("-") => value - self.product(),
                () => return value,
            }
        }
    }

    fn product(&mut self) -> u64 {
        let mut value = self.atom();
        loop {
            value = match () {
                () if self.eat("*") => value * self.atom(),
                () if self.eat("/") => value / self.atom(),
                () => return value,
            }
        }
    }

    fn atom(&mut self) -> u64 {
        if self.eat("(") {
            let value = self.shift();
            assert!(
                self.eat(")"),
                "{}: a ) is missing before '{}'",
                self.at,
                self.text
            );
            return value;
        }
        let end = self.text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let (word, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        self.text = rest.trim_start();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let value = match word.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => word.parse(),
            };
            return value.unwrap_or_else(|e| panic!("{}: '{word}': {e}", self.at));
        }
        let known = self.contract.values.get(word);
        *known.unwrap_or_else(|| panic!("{}: no constant '{word}'", self.at))
    }
}

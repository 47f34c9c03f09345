// SPDX-License-Identifier: GPL-2.0
//! A YAML document as a tree whose every node knows its place.
//!
//! Aliases are resolved by the parser, merge keys (`<<`) here. A reader takes keys out of a [`Map`]
//! one by one and at last calls [`Map::finish`], which complains of what nobody took.

use std::collections::BTreeSet;

use saphyr::{MarkedYaml, Scalar, YamlData, YamlLoader};
use saphyr_parser::{Parser, Tag};

use crate::error::{Fault, Place, Places};

/// Keys whose values a program gets.
const TEXTS: [&str; 2] = ["args", "environment"];

pub type Result<T> = std::result::Result<T, Fault>;

/// Nodes that aliases may stand for in all. A scenario of 100,000 hosts by alias needs some 20 each.
const ALIAS_NODES: usize = 4_000_000;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub place: Place,
    pub value: Value,
    /// How a number or a truth value is written: `007` and `1.10` are arguments, too.
    written: Option<Box<str>>,
}

/// The one document of a file.
pub fn parse(text: &str) -> Result<Node> {
    let mut loader = YamlLoader::<MarkedYaml>::default();
    loader.alias_limit(ALIAS_NODES);
    // Scalars come as they are written.
    loader.early_parse(false);
    let scan = |error: &saphyr::ScanError| {
        let mark = error.marker();
        Fault::at(place(mark.line(), mark.col()), error.info().to_string())
    };
    let mut parser = Parser::new_from_str(text);
    parser.load(&mut loader, true).map_err(|e| scan(&e))?;
    if let Some(error) = loader.error() {
        return Err(scan(error));
    }
    let mut documents = loader.into_documents().into_iter();
    let first = documents.next().ok_or_else(|| {
        Fault::at(
            place(1, 0),
            "the file is empty: it needs `general`, `network` and `hosts`",
        )
    })?;
    if let Some(second) = documents.next() {
        let place = mark(&second);
        return Err(Fault::at(place, "a second document: a scenario is one"));
    }
    convert(first)
}

fn place(line: usize, column: usize) -> Place {
    Place {
        line,
        column: column + 1,
    }
}

fn mark(yaml: &MarkedYaml) -> Place {
    place(yaml.span.start.line(), yaml.span.start.col())
}

fn convert(yaml: MarkedYaml) -> Result<Node> {
    let place = mark(&yaml);
    let mut written = None;
    let value = match yaml.data {
        YamlData::Value(scalar) => from_scalar(scalar),
        YamlData::Representation(_, _, Some(tag)) if !tag.is_yaml_core_schema() => {
            return Err(unknown(place, &tag));
        }
        YamlData::Representation(text, style, tag) => {
            let scalar = Scalar::parse_from_cow_and_metadata(text.clone(), style, tag.as_ref())
                .ok_or_else(|| Fault::at(place, format!("`{text}` is not what its tag says")))?;
            let value = from_scalar(scalar);
            if matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)) {
                written = Some(text.into());
            }
            value
        }
        YamlData::Sequence(items) => {
            Value::List(items.into_iter().map(convert).collect::<Result<_>>()?)
        }
        YamlData::Mapping(entries) => {
            let mut list = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                list.push((convert(key)?, convert(value)?));
            }
            only_once(&list)?;
            Value::Map(merge(list)?)
        }
        YamlData::Tagged(tag, _) => return Err(unknown(place, &tag)),
        _ => return Err(Fault::at(place, "not a value")),
    };
    Ok(Node {
        place,
        value,
        written,
    })
}

fn unknown(place: Place, tag: &Tag) -> Fault {
    Fault::at(
        place,
        format!("the tag {tag} means nothing here: leave it out"),
    )
}

/// The parser compares keys as they are written: `a` and `"a"` are one.
fn only_once(list: &[(Node, Node)]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for (key, _) in list {
        let Ok(text) = key.scalar("") else { continue };
        if seen.contains(&text) {
            let words = format!("duplicated key in mapping: `{text}`");
            return Err(Fault::at(key.place, words));
        }
        seen.insert(text);
    }
    Ok(())
}

fn from_scalar(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(b) => Value::Bool(b),
        Scalar::Integer(i) => Value::Int(i),
        Scalar::FloatingPoint(f) => Value::Float(f.into_inner()),
        Scalar::String(s) => Value::Text(s.into_owned()),
    }
}

/// `<<: MAP` or `<<: [MAP, ...]`: entries for the keys that are not there.
fn merge(mut list: Vec<(Node, Node)>) -> Result<Vec<(Node, Node)>> {
    let is_merge = |node: &Node| node.value == Value::Text("<<".into());
    let Some(at) = list.iter().position(|(key, _)| is_merge(key)) else {
        return Ok(list);
    };
    let (_, source) = list.remove(at);
    let sources = match source.value {
        Value::Map(_) => vec![source],
        Value::List(items) => items,
        _ => {
            return Err(Fault::at(
                source.place,
                "`<<` takes a map, or a list of maps",
            ))
        }
    };
    for source in sources {
        let Value::Map(entries) = source.value else {
            return Err(Fault::at(
                source.place,
                "`<<` takes a map, or a list of maps",
            ));
        };
        for (key, value) in entries {
            if !list.iter().any(|(other, _)| other.value == key.value) {
                list.push((key, value));
            }
        }
    }
    Ok(list)
}

impl Node {
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    pub fn wrong(&self, path: &str, wanted: &str) -> Fault {
        Fault::at(
            self.place,
            format!("{path}: {wanted} is needed, this is {}", self.kind()),
        )
    }

    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    pub fn text(&self, path: &str) -> Result<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong(path, "text")),
        }
    }

    /// Text, or a number as it is written.
    pub fn scalar(&self, path: &str) -> Result<String> {
        if let Some(text) = &self.written {
            return Ok(text.to_string());
        }
        match &self.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Int(i) => Ok(i.to_string()),
            Value::Float(f) => Ok(f.to_string()),
            Value::Bool(b) => Ok(b.to_string()),
            _ => Err(self.wrong(path, "text or a number")),
        }
    }

    pub fn bool(&self, path: &str) -> Result<bool> {
        match self.value {
            Value::Bool(b) => Ok(b),
            _ => Err(self.wrong(path, "true or false")),
        }
    }

    pub fn int<T: TryFrom<i64>>(&self, path: &str) -> Result<T> {
        match self.value {
            Value::Int(i) => T::try_from(i)
                .map_err(|_| Fault::at(self.place, format!("{path}: {i} is out of range"))),
            _ => Err(self.wrong(path, "a whole number")),
        }
    }

    pub fn list(&self, path: &str) -> Result<&[Node]> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => Err(self.wrong(path, "a list")),
        }
    }

    pub fn map(&self, path: &str) -> Result<Map<'_>> {
        match &self.value {
            Value::Map(entries) => {
                let mut list = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    list.push((key.scalar(path)?, key.place, value));
                }
                Ok(Map {
                    path: path.to_owned(),
                    place: self.place,
                    entries: list,
                })
            }
            _ => Err(self.wrong(path, "a map")),
        }
    }
}

impl Node {
    /// Sets a value below maps that are made where they are missing.
    pub fn set(&mut self, path: &[String], value: Value) {
        let Some((key, rest)) = path.split_first() else {
            self.value = value;
            // It stands in no file: see Error::Scenario.
            self.place = Place::default();
            self.written = None;
            return;
        };
        if !matches!(self.value, Value::Map(_)) {
            self.value = Value::Map(Vec::new());
        }
        let place = self.place;
        let node = |value| Node {
            place,
            value,
            written: None,
        };
        if let Value::Map(entries) = &mut self.value {
            let is_key = |(k, _): &(Node, Node)| k.value == Value::Text(key.clone());
            let at = entries.iter().position(is_key).unwrap_or_else(|| {
                entries.push((node(Value::Text(key.clone())), node(Value::Null)));
                entries.len() - 1
            });
            entries[at].1.set(rest, value);
        }
    }

    /// The document as JSON, which is YAML too.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(&self.json(false)).unwrap_or_default();
        format!("{text}\n")
    }

    /// `is_text`: numbers are words, as they are written.
    fn json(&self, is_text: bool) -> serde_json::Value {
        if let (true, Some(text)) = (is_text, &self.written) {
            return text.as_ref().into();
        }
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(b) => (*b).into(),
            Value::Int(i) => (*i).into(),
            Value::Float(f) => (*f).into(),
            Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(|item| item.json(is_text)).collect(),
            Value::Map(entries) => {
                let pair = |(k, v): &(Node, Node)| {
                    let key = k.scalar("").ok()?;
                    let value = v.json(is_text || TEXTS.contains(&key.as_str()));
                    Some((key, value))
                };
                serde_json::Value::Object(entries.iter().filter_map(pair).collect())
            }
        }
    }
}

/// A map that is being read.
#[derive(Debug)]
pub struct Map<'a> {
    pub path: String,
    pub place: Place,
    entries: Vec<(String, Place, &'a Node)>,
}

impl<'a> Map<'a> {
    /// To be asked before keys are taken.
    pub fn places(&self) -> Places {
        let entry = |(key, _, node): &(String, Place, &Node)| (key.clone(), node.place);
        Places::new(self.place, self.entries.iter().map(entry).collect())
    }

    /// Takes a key. One without a value (`key:`) counts as absent.
    pub fn take(&mut self, key: &str) -> Option<&'a Node> {
        let at = self.entries.iter().position(|(k, _, _)| k == key)?;
        Some(self.entries.remove(at).2).filter(|node| !node.is_null())
    }

    /// Takes a key for which `null` is a value like others.
    pub fn take_even_null(&mut self, key: &str) -> Option<&'a Node> {
        let at = self.entries.iter().position(|(k, _, _)| k == key)?;
        Some(self.entries.remove(at).2)
    }

    /// Takes a key that has to be there. A misspelt one is named where it is.
    pub fn need(&mut self, key: &str) -> Result<&'a Node> {
        if let Some(node) = self.take(key) {
            return Ok(node);
        }
        let near = self.entries.iter().filter(|(own, ..)| is_near(key, own));
        let meant = near.min_by_key(|(own, ..)| strsim::damerau_levenshtein(key, own));
        Err(match meant {
            Some((own, place, _)) => self.unknown(own, *place, &format!(": is `{key}` meant?")),
            None => Fault::at(self.place, format!("{}: `{key}` is missing", self.name())),
        })
    }

    fn unknown(&self, key: &str, place: Place, hint: &str) -> Fault {
        Fault::at(place, format!("{}: unknown key `{key}`{hint}", self.name()))
    }

    /// The dotted name of a key of it, for messages.
    pub fn at(&self, key: &str) -> String {
        match self.path.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.path),
        }
    }

    fn name(&self) -> &str {
        match self.path.is_empty() {
            true => "the scenario",
            false => &self.path,
        }
    }

    /// All that is left, in the order of the file.
    pub fn rest(&mut self) -> Vec<(String, Place, &'a Node)> {
        std::mem::take(&mut self.entries)
    }

    /// Refuses what nobody took. `known` is for the hint.
    pub fn finish(self, known: &[&str]) -> Result<()> {
        let Some((key, place, _)) = self.entries.first() else {
            return Ok(());
        };
        let near = known
            .iter()
            .map(|word| (strsim::damerau_levenshtein(word, key), *word))
            .min()
            .filter(|(_, word)| is_near(word, key));
        let hint = match near {
            Some((_, word)) => format!(": is `{word}` meant?"),
            None => format!(": known are {}", known.join(", ")),
        };
        Err(self.unknown(key, *place, &hint))
    }
}

/// Was `word` meant by `key`?
fn is_near(word: &str, key: &str) -> bool {
    let distance = strsim::damerau_levenshtein(word, key);
    distance <= 2 && 2 * distance < word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one() {
        let node = parse("a:\n  b: 1\n").unwrap();
        let mut map = node.map("").unwrap();
        let a = map.take("a").unwrap();
        let b = a.map("a").unwrap().take("b").unwrap();
        assert_eq!((b.place.line, b.place.column), (2, 6));
    }

    #[test]
    fn merge_keys_and_aliases() {
        let node = parse("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n").unwrap();
        let mut map = node.map("").unwrap();
        let mut b = map.take("b").unwrap().map("b").unwrap();
        assert_eq!(b.take("q").unwrap().int::<u32>("q"), Ok(3));
        assert_eq!(b.take("p").unwrap().int::<u32>("p"), Ok(1));
    }

    #[test]
    fn numbers_are_also_what_is_written() {
        let node = parse("args: [007, 1.10, 0x10, True, '1']\nseed: 007\n").unwrap();
        let mut map = node.map("").unwrap();
        let words: Vec<String> = map
            .take("args")
            .unwrap()
            .list("")
            .unwrap()
            .iter()
            .map(|item| item.scalar("").unwrap())
            .collect();
        assert_eq!(words, ["007", "1.10", "0x10", "True", "1"]);
        assert_eq!(map.take("seed").unwrap().int("seed"), Ok(7));
        // Another reader of what is printed gets the same.
        let again = parse(&node.to_json()).unwrap();
        let mut map = again.map("").unwrap();
        assert_eq!(
            map.take("args").unwrap().list("").unwrap()[1]
                .scalar("")
                .unwrap(),
            "1.10"
        );
        assert_eq!(map.take("seed").unwrap().int("seed"), Ok(7));
    }

    #[test]
    fn keys_are_there_once_however_they_are_written() {
        for text in ["a: 1\na: 2\n", "a: 1\n\"a\": 2\n"] {
            let fault = parse(text).unwrap_err();
            assert!(fault.words.contains("duplicated key"), "{fault:?}");
            assert_eq!(fault.place.line, 2);
        }
    }

    #[test]
    fn tags_of_yaml_itself() {
        let node = parse("a: !!str 5\nb: !!map {c: !!int 5}\n").unwrap();
        let mut map = node.map("").unwrap();
        assert_eq!(map.take("a").unwrap().text("a"), Ok("5"));
        assert!(parse("a: !mine 5\n").unwrap_err().words.contains("tag"));
        assert!(parse("a: !!int x\n").unwrap_err().words.contains("tag"));
    }

    #[test]
    fn a_key_that_is_needed_and_misspelt() {
        let node = parse("seed: 1\nstoptime: 3\n").unwrap();
        let fault = node.map("general").unwrap().need("stop_time").unwrap_err();
        assert_eq!((fault.place.line, fault.place.column), (2, 1));
        assert_eq!(
            fault.words,
            "general: unknown key `stoptime`: is `stop_time` meant?"
        );
        // The nearest, where several are near.
        let node = parse("stop_tmie2: 1\nstoptime: 3\n").unwrap();
        let fault = node.map("general").unwrap().need("stop_time").unwrap_err();
        assert!(fault.words.contains("`stoptime`: is"), "{fault:?}");
        let node = parse("seed: 1\n").unwrap();
        let fault = node.map("general").unwrap().need("stop_time").unwrap_err();
        assert!(fault.words.contains("`stop_time` is missing"));
    }

    #[test]
    fn unknown_keys_have_a_hint() {
        let node = parse("stop_tme: 1\n").unwrap();
        let fault = node.map("general").unwrap().finish(&["stop_time", "seed"]);
        let words = fault.unwrap_err().words;
        assert_eq!(
            words,
            "general: unknown key `stop_tme`: is `stop_time` meant?"
        );
    }

    #[test]
    fn syntax_errors_have_a_place() {
        let fault = parse("a: [1, 2\nb: 3\n").unwrap_err();
        assert!(fault.place.line >= 1, "{fault:?}");
        assert!(parse("").is_err());
        assert!(parse("a: 1\n---\nb: 2\n").is_err());
    }
}

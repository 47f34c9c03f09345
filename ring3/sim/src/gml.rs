// SPDX-License-Identifier: GPL-2.0
//! GML, the Graph Modelling Language: keys with values, where a value is a number, a string in double
//! quotes, or a list of keys with values in brackets. `#` begins a comment at the start of a line.
//! Source: Himsolt, GML: A portable graph file format, 1997. No crate reads it with places.

use crate::error::{Fault, Place};

pub type Result<T> = std::result::Result<T, Fault>;

/// Lists within lists; a graph needs 3, graphics within nodes 4.
const DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    pub place: Place,
    pub value: Value,
}

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Open,
    Close,
    End,
}

struct Reader<'a> {
    rest: &'a str,
    place: Place,
}

/// The entries of a GML text.
pub fn parse(text: &str) -> Result<Vec<Entry>> {
    let mut reader = Reader {
        rest: text,
        place: Place { line: 1, column: 1 },
    };
    reader.entries(0)
}

impl<'a> Reader<'a> {
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (gone, rest) = self.rest.split_at(bytes);
        for c in gone.chars() {
            match c {
                '\n' => {
                    self.place.line += 1;
                    self.place.column = 1;
                }
                _ => self.place.column += 1,
            }
        }
        self.rest = rest;
        gone
    }

    fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            let line = self.rest.find('\n').unwrap_or(self.rest.len());
            self.advance(line);
        }
    }

    fn token(&mut self) -> Result<(Place, Token<'a>)> {
        self.skip();
        let place = self.place;
        let Some(first) = self.rest.chars().next() else {
            return Ok((place, Token::End));
        };
        let token = match first {
            '[' | ']' => {
                self.advance(1);
                match first {
                    '[' => Token::Open,
                    _ => Token::Close,
                }
            }
            '"' => {
                self.advance(1);
                let end = self
                    .rest
                    .find('"')
                    .ok_or_else(|| Fault::at(place, "a text without its closing quote"))?;
                let text = self.advance(end);
                self.advance(1);
                Token::Text(text)
            }
            _ => {
                let end = self
                    .rest
                    .find(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | '"' | '#'))
                    .unwrap_or(self.rest.len());
                Token::Word(self.advance(end))
            }
        };
        Ok((place, token))
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        loop {
            let (place, token) = self.token()?;
            let key = match token {
                Token::End if depth == 0 => return Ok(entries),
                Token::Close if depth > 0 => return Ok(entries),
                Token::End => {
                    return Err(Fault::at(
                        place,
                        "the graph ends within brackets: `]` is missing",
                    ))
                }
                Token::Close => return Err(Fault::at(place, "`]` without `[`")),
                Token::Word(word) if is_key(word) => word.to_owned(),
                _ => return Err(Fault::at(place, "a key is needed here: letters and digits")),
            };
            let value = self.value(&key, depth)?;
            entries.push(Entry { key, place, value });
        }
    }

    fn value(&mut self, key: &str, depth: usize) -> Result<Value> {
        let (place, token) = self.token()?;
        match token {
            Token::Text(text) => Ok(Value::Text(text.to_owned())),
            Token::Open if depth == DEPTH => {
                Err(Fault::at(place, "too many brackets within brackets"))
            }
            Token::Open => Ok(Value::List(self.entries(depth + 1)?)),
            Token::Word(word) => number(word).ok_or_else(|| {
                Fault::at(
                    place,
                    format!("{key}: `{word}` is not a number; text needs quotes"),
                )
            }),
            Token::Close | Token::End => Err(Fault::at(place, format!("{key}: no value"))),
        }
    }
}

fn is_key(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn number(word: &str) -> Option<Value> {
    if let Ok(int) = word.parse() {
        return Some(Value::Int(int));
    }
    let is_number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    word.parse().ok().filter(|_| is_number).map(Value::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph() {
        let text = "# made by hand\ngraph [\n  directed 0\n  node [ id 1 label \"a b\" ]\n  edge [ loss 1e-3 ]\n]\n";
        let entries = parse(text).unwrap();
        let Value::List(graph) = &entries[0].value else {
            panic!()
        };
        assert_eq!(graph[0].value, Value::Int(0));
        let Value::List(node) = &graph[1].value else {
            panic!()
        };
        assert_eq!(node[1].value, Value::Text("a b".into()));
        assert_eq!(
            node[1].place,
            Place {
                line: 4,
                column: 15
            }
        );
        let Value::List(edge) = &graph[2].value else {
            panic!()
        };
        assert_eq!(edge[0].value, Value::Float(0.001));
    }

    #[test]
    fn faults_have_places() {
        for (text, line, column) in [
            ("graph [\n node [ id ]\n]", 2, 12),
            ("graph [", 1, 8),
            ("]", 1, 1),
            ("graph [ a b ]", 1, 11),
            ("a \"b", 1, 3),
            ("1 2", 1, 1),
        ] {
            let place = parse(text).unwrap_err().place;
            assert_eq!((place.line, place.column), (line, column), "{text}");
        }
        let deep = "a [ ".repeat(100);
        assert!(parse(&deep).is_err());
    }
}

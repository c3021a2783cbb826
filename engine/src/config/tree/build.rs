//! Parser events into a tree.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use super::super::{Mistake, Source, Span, Spanned};
use super::core_schema::{integer, number};
use super::place::{Offsets, after_properties, anchor_name, scalar_span};
use super::{Entry, Scalar, Tree, Value, hint, plain_scalar};

/// What all values may take, aliases counted in full: a few lines of aliases can stand for billions of values.
const MOST_BYTES: usize = 64 << 20;

/// Stops the building; the mistake has been noted.
struct Stop;

/// The file's one value, with what is wrong in it that does not keep it from being read; or all that is wrong.
pub(in super::super) fn build(source: &Arc<Source>) -> (Option<Tree>, Vec<Mistake>) {
    let mut builder = Builder {
        parser: Parser::new_from_str(source.text()),
        source,
        offsets: Offsets::new(source.text()),
        anchors: HashMap::new(),
        anchor_names: Vec::new(),
        open: Vec::new(),
        last_scalar: None,
        n_bytes: 0,
        mistakes: Vec::new(),
    };
    let tree = builder.document().ok();
    (tree, builder.mistakes)
}

struct Builder<'s> {
    parser: Parser<'s, StrInput<'s>>,
    source: &'s Source,
    offsets: Offsets,
    anchors: HashMap<usize, (Tree, usize)>,
    anchor_names: Vec<String>,
    /// Where the flow collections that are not yet closed begin, `None` for block collections.
    open: Vec<Option<Span>>,
    last_scalar: Option<Span>,
    n_bytes: usize,
    mistakes: Vec<Mistake>,
}

type Next<'s> = (Event<'s>, Span);

impl<'s> Builder<'s> {
    fn document(&mut self) -> Result<Tree, Stop> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (Event::StreamEnd, _) => {
                    let mistake = Mistake::at(Span::new(0, 0), "the file is empty");
                    return self.stop(mistake.label("a pipeline needs `name` and `nodes`"));
                }
                first => {
                    let tree = self.value(first)?;
                    self.end()?;
                    return Ok(tree);
                }
            }
        }
    }

    /// Nothing may follow the first document.
    fn end(&mut self) -> Result<(), Stop> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), span) => {
                    let mistake = Mistake::at(span, "a second document begins here");
                    return self.stop(mistake.label("a file holds one pipeline"));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<Next<'s>, Stop> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, self.offsets.span(span))),
            Some(Err(error)) => {
                let at = self.offsets.byte(error.marker().index());
                let context = hint::Context {
                    source: self.source,
                    open: self.open.last().copied().flatten(),
                    last_scalar: self.last_scalar,
                    anchor_names: &self.anchor_names,
                };
                let mistake = context.explain(error.info(), at);
                self.stop(mistake)
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn spend(&mut self, n_bytes: usize, span: Span) -> Result<(), Stop> {
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        if self.n_bytes > MOST_BYTES {
            let message = format!("more than {} MiB of values, aliases counted in full", MOST_BYTES >> 20);
            return self.stop(Mistake::at(span, message));
        }
        Ok(())
    }

    fn stop<T>(&mut self, mistake: Mistake) -> Result<T, Stop> {
        self.mistakes.push(mistake);
        Err(Stop)
    }

    fn value(&mut self, (event, span): Next<'s>) -> Result<Tree, Stop> {
        self.spend(size_of::<Tree>(), span)?;
        let written = after_properties(self.source, span);
        let (tree, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let written = scalar_span(self.source, written, style);
                self.last_scalar = Some(written);
                let scalar = self.typed(&text, style, tag.as_deref(), span)?;
                (Tree::new(scalar, written), anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", span);
                (self.list(written)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", span);
                (self.map(written)?, anchor)
            }
            Event::Alias(id) => return self.alias(id, span),
            _ => return self.stop(Mistake::at(span, "this is not valid YAML")),
        };
        if anchor != 0 {
            self.anchor_names.push(anchor_name(self.source.slice(span)));
            let n_bytes = tree.n_bytes();
            self.spend(n_bytes, span)?;
            self.anchors.insert(anchor, (tree.clone(), n_bytes));
        }
        Ok(tree)
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<Tree, Stop> {
        let Some(&(_, n_bytes)) = self.anchors.get(&id) else {
            return self.stop(Mistake::at(span, "an alias inside its own anchor would never end"));
        };
        self.spend(n_bytes, span)?;
        Ok(self.anchors[&id].0.clone())
    }

    fn enter(&mut self, start: Span) -> Result<(), Stop> {
        if self.open.len() >= hint::DEEPEST {
            return self.stop(hint::too_deep(start));
        }
        let flow = self.source.slice(start).starts_with(['[', '{']);
        self.open.push(flow.then_some(Span::new(start.start, start.start + 1)));
        Ok(())
    }

    /// The span of a collection: to its bracket, or to the end of its last part.
    fn leave(&mut self, start: Span, last: Option<Span>, end: Span) -> Span {
        let flow = self.open.pop().flatten().is_some();
        let until = match last {
            _ if flow => end.start + 1,
            Some(last) => last.end,
            None => start.end,
        };
        Span::new(start.start, until.min(self.source.text().len()))
    }

    fn list(&mut self, start: Span) -> Result<Tree, Stop> {
        self.enter(start)?;
        let mut items: Vec<Tree> = Vec::new();
        // An alias has the span of what it stands for; the list still ends where the alias does.
        let mut last: Option<Span> = None;
        loop {
            match self.next()? {
                (Event::SequenceEnd, end) => {
                    let span = self.leave(start, last, end);
                    return Ok(Tree::new(Value::List(items), span));
                }
                item => {
                    let alias = matches!(item.0, Event::Alias(_)).then_some(item.1);
                    let tree = self.value(item)?;
                    last = Some(alias.unwrap_or(tree.span));
                    items.push(tree);
                }
            }
        }
    }

    fn map(&mut self, start: Span) -> Result<Tree, Stop> {
        self.enter(start)?;
        let mut entries: Vec<Entry> = Vec::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        let mut merged: Vec<Entry> = Vec::new();
        let mut last: Option<Span> = None;
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, end) => {
                    for entry in merged {
                        if !index.contains_key(&entry.key.value) {
                            index.insert(entry.key.value.clone(), entries.len());
                            entries.push(entry);
                        }
                    }
                    let span = self.leave(start, last, end);
                    return Ok(Tree::new(Value::Map(entries), span));
                }
                key => self.key(key)?,
            };
            let next = self.next()?;
            let alias = matches!(next.0, Event::Alias(_)).then_some(next.1);
            let mut value = self.value(next)?;
            if value.is_null() && self.source.slice(value.span).is_empty() {
                value.span = key.span;
            }
            last = Some(alias.unwrap_or(value.span).to(key.span));
            if key.value == "<<" {
                self.merge(&mut merged, value, alias);
            } else if let Some(&first) = index.get(&key.value) {
                let mistake = Mistake::at(key.span, format!("`{}` is written twice", key.value));
                self.mistakes.push(mistake.label("the second").also(entries[first].key.span, "the first"));
            } else {
                index.insert(key.value.clone(), entries.len());
                entries.push(Entry { key, value });
            }
        }
    }

    /// Takes over the lines of a map, or of a list of maps, of which the first that has a key wins.
    fn merge(&mut self, merged: &mut Vec<Entry>, value: Tree, alias: Option<Span>) {
        let span = alias.unwrap_or(value.span);
        let maps = match value.value {
            Value::List(items) => items,
            _ => vec![value],
        };
        for map in maps {
            match map.value {
                Value::Map(entries) => merged.extend(entries),
                Value::Wrong => {}
                _ => self.mistakes.push(Mistake::at(span, "`<<` takes in maps, and this is none")),
            }
        }
    }

    fn key(&mut self, (event, span): Next<'s>) -> Result<Spanned<String>, Stop> {
        let value = self.value((event, span))?;
        let text = match &value.value {
            Value::Scalar(Scalar::Text(text)) => text.clone(),
            Value::Scalar(Scalar::Null) if self.source.slice(value.span).is_empty() => {
                return self.stop(Mistake::at(span, "a key is missing before the `:`"));
            }
            Value::Scalar(_) => self.source.slice(value.span).to_owned(),
            _ => {
                let mistake = Mistake::at(value.span, "a list or map cannot be a key");
                return self.stop(mistake.label("quote it if it is meant as text"));
            }
        };
        Ok(Spanned::new(text, value.span))
    }

    fn typed(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Value, Stop> {
        let Some(tag) = tag else {
            let plain = matches!(style, ScalarStyle::Plain);
            return Ok(Value::Scalar(if plain { plain_scalar(text) } else { Scalar::Text(text.to_owned()) }));
        };
        let scalar = match tag.suffix.as_str() {
            "" if tag.handle == "!" => Some(Scalar::Text(text.to_owned())),
            _ if !tag.is_yaml_core_schema() => None,
            "str" => Some(Scalar::Text(text.to_owned())),
            "null" => Some(Scalar::Null),
            "int" => integer(text).map(Scalar::Integer),
            "float" => number(text).map(Scalar::Number),
            "bool" => Some(plain_scalar(text)).filter(|scalar| matches!(scalar, Scalar::Bool(_))),
            _ => None,
        };
        Ok(scalar.map(Value::Scalar).unwrap_or_else(|| {
            self.wrong_tag(span);
            Value::Wrong
        }))
    }

    fn check_tag(&mut self, tag: Option<&Tag>, fitting: &str, span: Span) {
        if tag.is_some_and(|tag| !(tag.is_yaml_core_schema() && tag.suffix == fitting)) {
            self.wrong_tag(span);
        }
    }

    fn wrong_tag(&mut self, span: Span) {
        let words = self.source.slice(span).split_whitespace();
        let tag = words.into_iter().find(|word| word.starts_with('!')).unwrap_or("!");
        self.mistakes.push(Mistake::at(span, format!("the tag `{tag}` does not fit here")).label("leave it out"));
    }
}

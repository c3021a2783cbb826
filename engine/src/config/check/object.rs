//! Maps: unknown keys, missing keys, and the value of each.

use serde_json::Value as Json;

use super::super::tree::{Entry, Tree};
use super::super::{Mistake, list, nearest};
use super::words::{description, shortened};
use super::{Checker, Place, schema};

impl<'a> Checker<'a> {
    pub(super) fn check_object(&mut self, schema: &'a Json, entries: &[Entry], tree: &Tree, place: Place<'_>) {
        let own = schema.get("properties").and_then(Json::as_object);
        let others = schema.get("additionalProperties").or_else(|| schema.get("unevaluatedProperties"));
        let closed = others == Some(&Json::Bool(false)) || (place.closed && others.is_none());
        // What another part of the schema lists is checked there, and known here.
        let known = self.schemas.properties(schema);
        let mut meant: Vec<&str> = Vec::new();
        for entry in entries {
            let name = format!("`{}`", shortened(&entry.key));
            let whose = format!(" in {name}");
            let inner = Place { name: &name, whose: &whose, span: entry.key.span, closed: false };
            match own.and_then(|own| own.get(&entry.key.value)) {
                Some(property) => self.check(property, &entry.value, inner),
                None if known.iter().any(|(known, _)| *known == entry.key.value) => {}
                None if closed => {
                    let glued = entry.key.split(':').next().unwrap_or("");
                    meant.extend(nearest(&entry.key, known.iter().map(|(name, _)| *name)));
                    meant.extend(known.iter().map(|(name, _)| *name).find(|name| *name == glued));
                    let mistake = self.unknown_key(entry, &known, place);
                    self.tell(tree, mistake);
                }
                None => {
                    if let Some(others) = others.filter(|others| others.is_object()) {
                        self.check(others, &entry.value, inner);
                    }
                }
            }
        }
        self.check_required(schema, entries, &meant, place);
        if entries.is_empty() && schema["minProperties"].as_u64() == Some(1) {
            let mistake = Mistake::at(tree.span, format!("{} is empty", place.name));
            self.tell(tree, mistake.label("write at least one"));
        }
    }

    fn unknown_key(&self, entry: &Entry, known: &[(&str, &Json)], place: Place<'_>) -> Mistake {
        let key = &entry.key;
        let names = || known.iter().map(|(name, _)| *name);
        let message = format!("unknown {} `{}`{}", self.noun, shortened(key), place.whose);
        let mistake = Mistake::at(key.span, message);
        // `{size:32}` is the key `size:32` without a value.
        let glued = key.split_once(':').filter(|(name, _)| names().any(|known| known == *name));
        let mistake = match (glued, nearest(key, names())) {
            (Some((name, value)), _) => mistake.label(format!("write `{name}: {value}`, with a space")),
            (None, Some(near)) => mistake.label(format!("did you mean `{near}`?")),
            (None, None) => mistake,
        };
        match known.is_empty() {
            true => mistake.note(format!("there are no {}s{}", self.noun, place.whose)),
            false => mistake.note(format!("{}s: {}", self.noun, list(names()))),
        }
    }

    /// What must be there. A key in `meant` is there with a slip in it, which has been told.
    fn check_required(&mut self, schema: &'a Json, entries: &[Entry], meant: &[&str], place: Place<'_>) {
        for name in schema::list(schema, "required").iter().filter_map(Json::as_str) {
            if meant.contains(&name) || entries.iter().any(|entry| entry.key.value == name) {
                continue;
            }
            let mistake = self.missing(name, place);
            let known = self.schemas.properties(schema);
            let property = known.into_iter().find(|(known, _)| *known == name).map(|(_, property)| property);
            let mistake = match property.and_then(description) {
                Some(text) => mistake.note(format!("`{name}`: {}", text.trim_end_matches('.'))),
                None => mistake,
            };
            self.mistakes.push(mistake);
        }
    }

    pub(super) fn missing(&self, name: &str, place: Place<'_>) -> Mistake {
        let message = format!("missing {} `{name}`{}", self.noun, place.whose);
        Mistake::at(place.span, message).label(format!("add `{name}: …`"))
    }
}

//! Alternatives: which one was meant, and what is wrong with it.

use serde_json::Value as Json;

use super::super::nearest::either;
use super::super::tree::{Tree, Value};
use super::super::{Mistake, list};
use super::words::{given, shown, written};
use super::{Checker, Place, schema};

impl<'a> Checker<'a> {
    pub(super) fn check_union(&mut self, schema: &'a Json, tree: &Tree, place: Place<'_>) {
        let branches = self.schemas.branches(schema);
        let mut tried: Vec<(&Json, Vec<Mistake>)> = Vec::new();
        for branch in branches {
            let Self { schemas, noun, depth, .. } = *self;
            let mut checker = Checker { schemas, noun, depth, mistakes: Vec::new() };
            // Keys beside the alternatives are theirs no more than each other's.
            let closed = place.closed && schema.get("properties").is_none();
            checker.check(branch, tree, Place { closed, ..place });
            if checker.mistakes.is_empty() {
                return;
            }
            tried.push((branch, checker.mistakes));
        }
        let (fitting, others): (Vec<_>, Vec<_>) = tried.into_iter().partition(|(branch, _)| fits(branch, tree));
        let fitting_schemas: Vec<&Json> = fitting.iter().map(|(branch, _)| *branch).collect();
        let other_schemas: Vec<&Json> = others.iter().map(|(branch, _)| *branch).collect();
        if let Some(mistake) = self.none_of_the_words(&fitting_schemas, &other_schemas, tree, place) {
            return self.tell(tree, mistake);
        }
        if let Some(mistake) = self.unknown_tag(&fitting_schemas, tree, place) {
            return self.tell(tree, mistake);
        }
        // Of alternatives of the right type, the one with the fewest mistakes was meant.
        let best = fitting.into_iter().min_by_key(|(branch, mistakes)| (other_tag(branch, tree), mistakes.len()));
        match best {
            Some((_, mistakes)) => self.mistakes.extend(mistakes),
            None => {
                let mistake = self.none_of_the_types(schema, tree, place);
                self.tell(tree, mistake);
            }
        }
    }

    /// All alternatives of the right type are lists of words, and the value is not in them.
    fn none_of_the_words(
        &self,
        fitting: &[&'a Json],
        others: &[&'a Json],
        tree: &Tree,
        place: Place<'_>,
    ) -> Option<Mistake> {
        if !matches!(tree.value, Value::Scalar(_)) || fitting.is_empty() {
            return None;
        }
        let mut words = Vec::new();
        for branch in fitting {
            words.extend(schema::values(branch)?.into_iter().filter(|value| !value.is_null()).map(written));
        }
        let besides: Vec<String> = others
            .iter()
            .filter(|branch| schema::types(branch) != ["null"])
            .map(|branch| self.wanted(branch))
            .collect();
        let besides = if besides.is_empty() { String::new() } else { format!("; or {}", either(&besides)) };
        Some(self.unknown_value(&words, &besides, tree, place))
    }

    fn none_of_the_types(&self, schema: &'a Json, tree: &Tree, place: Place<'_>) -> Mistake {
        let message = format!("{} wants {}, and this is {}", place.name, self.wanted(schema), given(tree));
        Mistake::at(tree.span, message)
    }

    /// All alternatives are told apart by the same key, and the value has none of theirs there.
    fn unknown_tag(&self, fitting: &[&Json], tree: &Tree, place: Place<'_>) -> Option<Mistake> {
        tree.as_map()?;
        let (first, rest) = fitting.split_first().filter(|(_, rest)| !rest.is_empty())?;
        for (name, value) in tags(first) {
            let value_in =
                |branch: &&Json| tags(branch).find(|(other, _)| *other == name).map(|(_, value)| written(value));
            let Some(mut words) = rest.iter().map(value_in).collect::<Option<Vec<String>>>() else {
                continue;
            };
            words.push(written(value));
            let names = || words.iter().map(String::as_str);
            let all = format!("values: {}", list(names()));
            let Some(own) = tree.get(name) else {
                let required = |branch: &&Json| schema::list(branch, "required").iter().any(|key| key == name);
                if fitting.iter().all(required) {
                    return Some(self.missing(name, place).note(all));
                }
                continue;
            };
            if !names().any(|word| own.as_text() == Some(word)) {
                let text = own.as_text().map_or_else(|| given(own), |text| format!("`{}`", shown(own, text)));
                let mistake = Mistake::at(own.span, format!("unknown value {text} for `{name}`"));
                return Some(mistake.suggest(own.as_text().unwrap_or(""), names()).note(all));
            }
        }
        None
    }
}

/// Whether a value is of the type of an alternative, whatever else is wrong with it.
fn fits(branch: &Json, tree: &Tree) -> bool {
    match schema::values(branch) {
        Some(values) if schema::types(branch).is_empty() => match tree.as_text() {
            Some(_) => values.iter().any(|value| value.is_string()),
            None => values.iter().any(|value| schema::equals(value, tree)),
        },
        _ => schema::allows_type(branch, tree),
    }
}

/// The one value that an alternative allows for each key that it has one for.
fn tags(branch: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let properties = branch.get("properties").and_then(Json::as_object).into_iter().flatten();
    properties.filter_map(|(name, property)| match schema::values(property)?[..] {
        [only] => Some((name.as_str(), only)),
        _ => None,
    })
}

/// How many of an alternative's tags the value contradicts.
fn other_tag(branch: &Json, tree: &Tree) -> usize {
    let other = |(name, value): &(&str, &Json)| tree.get(name).is_none_or(|own| !schema::equals(value, own));
    tags(branch).filter(other).count()
}

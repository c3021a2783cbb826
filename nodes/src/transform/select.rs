//! `transform.select`: which columns go on, and under which names.

use engine::data::{Field, Role, Schema};
use engine::node::{BuildCx, Fault, From, Node, NodeKind, NodeSpec, Output, SpecCx, SpecError, Stage, unknown_column};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

/// Chooses and renames columns. Nothing is copied.
///
/// `uri` and `id` are always kept, so that a row that is rejected later can be told from others; `drop: [uri]` only keeps
/// sinks from writing it.
///
/// # Input
/// Any columns.
///
/// # Output
/// The chosen columns in the order of the input. Those that `keep` names are written by sinks even where they would not
/// be otherwise, such as `width`, `height` and `format` of a decoded image.
///
/// # Example
/// ```yaml
/// chosen: {kind: transform.select, with: {keep: [labels, width, height], rename: {labels: animals}}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// The columns that go on; absent: all. `uri` and `id` need not be named.
    keep: Option<Vec<String>>,
    /// Columns that do not go on.
    #[serde(default)]
    drop: Vec<String>,
    /// New names: `{old: new}`.
    #[serde(default)]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    rename: IndexMap<String, String>,
}

impl NodeKind for Select {
    const NAME: &'static str = "transform.select";
    const EXAMPLE: &'static str =
        "chosen: {kind: transform.select, with: {keep: [labels, width, height], rename: {labels: animals}}}";
}

impl Node for Select {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let input = cx.input();
        self.check_names(input)?;
        let mut spec = NodeSpec { batch: input.batch, detail: self.detail(), ..NodeSpec::default() };
        for (column, field) in input.fields.iter().enumerate() {
            let Some(role) = self.role_of(field) else {
                if self.rename.contains_key(&*field.name) {
                    let message = format!("`{}` is renamed, and does not go on", field.name);
                    return Err(SpecError::new(message).at(&["rename", &field.name]));
                }
                continue;
            };
            let mut field = Field { role, ..field.clone() };
            if let Some(name) = self.rename.get(&*field.name) {
                // By its new name it is another column, which a join must not take for one that the branches share.
                field = Field { name: name.as_str().into(), origin: None, ..field };
            }
            if spec.outputs.iter().any(|output| output.field.name == field.name) {
                let error = SpecError::new(format!("two columns would be called `{}`", field.name));
                return Err(error.at(&["rename"]).note(format!("columns: {}", input.names())));
            }
            spec.outputs.push(Output { field, from: From::Input { input: 0, column } });
        }
        Ok(spec)
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Pass)
    }
}

impl Select {
    /// What a column is for behind this node; `None` if it does not go on.
    fn role_of(&self, field: &Field) -> Option<Role> {
        let is_named = |names: &[String]| names.iter().any(|name| **name == *field.name);
        let is_kept = self.keep.as_deref().is_some_and(is_named);
        let names_row = matches!(field.role, Role::Uri | Role::Id) || matches!(&*field.name, "uri" | "id");
        if is_named(&self.drop) {
            return names_row.then_some(Role::Auxiliary);
        }
        match field.role {
            Role::Auxiliary if is_kept => Some(Role::Result),
            role if is_kept || names_row || self.keep.is_none() => Some(role),
            _ => None,
        }
    }

    fn check_names(&self, input: &Schema) -> Result<(), SpecError> {
        let keep = self.keep.iter().flatten().enumerate().map(|(at, name)| ("keep", at.to_string(), name));
        let drop = self.drop.iter().enumerate().map(|(at, name)| ("drop", at.to_string(), name));
        let rename = self.rename.keys().map(|name| ("rename", name.clone(), name));
        for (option, at, name) in keep.chain(drop).chain(rename) {
            if input.index_of(name).is_none() {
                return Err(unknown_column(input, name).at(&[option, &at]));
            }
        }
        match self.drop.iter().find(|name| self.keep.iter().flatten().any(|kept| kept == *name)) {
            Some(name) => Err(SpecError::new(format!("`{name}` is both kept and dropped")).at(&["drop"])),
            None => Ok(()),
        }
    }

    fn detail(&self) -> String {
        let mut parts = Vec::new();
        if let Some(keep) = &self.keep {
            parts.push(format!("keep {}", keep.join(", ")));
        }
        if !self.drop.is_empty() {
            parts.push(format!("drop {}", self.drop.join(", ")));
        }
        parts.extend(self.rename.iter().map(|(old, new)| format!("{old} → {new}")));
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use engine::data::ColumnType;
    use engine::node::harness::Harness;

    use super::*;

    fn select(with: &str) -> Result<Vec<(String, Role)>, SpecError> {
        let fields = [
            ("id", ColumnType::Text, Role::Auxiliary),
            ("uri", ColumnType::Text, Role::Uri),
            ("width", ColumnType::Int, Role::Auxiliary),
            ("labels", ColumnType::Text, Role::Result),
        ];
        let fields = fields.map(|(name, ty, role)| Field { origin: Some(0), ..Field::new(name, ty, role) });
        let schema = Schema { fields: fields.into(), batch: None };
        let spec = Harness::new::<Select>(with, vec![schema]).spec()?;
        Ok(spec.outputs.iter().map(|output| (output.field.name.to_string(), output.field.role)).collect())
    }

    #[track_caller]
    fn check(with: &str, expected: &[(&str, Role)]) {
        let expected: Vec<_> = expected.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect();
        assert_eq!(select(with).unwrap(), expected);
    }

    #[test]
    fn keep_chooses_and_makes_sinks_write() {
        use Role::{Auxiliary, Result, Uri};
        check("keep: [width]", &[("id", Auxiliary), ("uri", Uri), ("width", Result)]);
        check("keep: [id, labels]", &[("id", Result), ("uri", Uri), ("labels", Result)]);
        check("{}", &[("id", Auxiliary), ("uri", Uri), ("width", Auxiliary), ("labels", Result)]);
    }

    #[test]
    fn drop_takes_away_but_rows_keep_their_names() {
        use Role::{Auxiliary, Result};
        check("drop: [uri, width]", &[("id", Auxiliary), ("uri", Auxiliary), ("labels", Result)]);
    }

    #[test]
    fn rename_changes_the_name_only() {
        use Role::{Auxiliary, Result, Uri};
        check(
            "{drop: [width], rename: {uri: path, labels: width}}",
            &[("id", Auxiliary), ("path", Uri), ("width", Result)],
        );
    }

    #[test]
    fn mistakes_name_the_place_and_the_nearest_column() {
        let check = |with: &str, option: &[&str], message: &str, label: Option<&str>| {
            let error = select(with).unwrap_err();
            assert_eq!(error.message, message);
            assert_eq!(
                (&error.option[..], error.label.as_deref()),
                (&option.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()[..], label)
            );
        };
        let meant = Some("did you mean `width`?");
        check("keep: [labels, widht]", &["keep", "1"], "there is no column `widht`", meant);
        check("drop: [widht]", &["drop", "0"], "there is no column `widht`", meant);
        check("rename: {widht: w}", &["rename", "widht"], "there is no column `widht`", meant);
        check("rename: {width: labels}", &["rename"], "two columns would be called `labels`", None);
        check("{keep: [width], drop: [width]}", &["drop"], "`width` is both kept and dropped", None);
        check(
            "{keep: [width], rename: {labels: l}}",
            &["rename", "labels"],
            "`labels` is renamed, and does not go on",
            None,
        );
    }
}

//! `transform.join`: the columns of several branches in one row.

use engine::data::{Field, Role};
use engine::node::{BuildCx, Fault, From, Node, NodeKind, NodeSpec, Output, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

/// Puts the columns of several branches of one source together, row by row. A row comes out only if every branch has it.
///
/// # Input
/// Two or more nodes, `from: [a, b]`. Columns that they inherited from the node at which the branches parted are one
/// column; of columns that no sink would write, such as `width` and `height` where each branch decodes for itself, the
/// first input's goes on; other columns must differ in name.
///
/// # Output
/// The first input's columns, then what each of the others adds.
///
/// # Example
/// ```yaml
/// both: {kind: transform.join, from: [cats, dogs]}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {}

impl NodeKind for Join {
    const NAME: &'static str = "transform.join";
    const EXAMPLE: &'static str = "both: {kind: transform.join, from: [cats, dogs]}";
}

impl Node for Join {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        if cx.inputs.len() < 2 {
            return Err(SpecError::new("a join needs two inputs or more").label("write `from: [a, b]`"));
        }
        let mut outputs: Vec<Output> = Vec::new();
        for (input, schema) in cx.inputs.iter().enumerate() {
            for (column, field) in schema.fields.iter().enumerate() {
                let Some(known) = outputs.iter_mut().find(|output| output.field.name == field.name) else {
                    outputs.push(Output { field: field.clone(), from: From::Input { input, column } });
                    continue;
                };
                // Nobody could have told these apart.
                let unseen = known.field.role == Role::Auxiliary && field.role == Role::Auxiliary;
                if !is_same(&known.field, field) && !unseen {
                    let From::Input { input: first, .. } = known.from else { unreachable!("a join makes no column") };
                    return Err(collision(&field.name, cx.input_names[first], cx.input_names[input]));
                }
                // One branch may have chosen the column to be written.
                if known.field.role == Role::Auxiliary {
                    known.field.role = field.role;
                }
            }
        }
        Ok(NodeSpec { outputs, detail: "row by row".to_owned(), ..NodeSpec::default() })
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Pass)
    }

    fn joins(&self) -> bool {
        true
    }
}

/// Whether two branches got a column from one node.
fn is_same(a: &Field, b: &Field) -> bool {
    a.origin.is_some() && a.origin == b.origin && a.ty == b.ty
}

fn collision(name: &str, first: &str, second: &str) -> SpecError {
    SpecError::new(format!("both `{first}` and `{second}` give a column `{name}`"))
        .label("give one of them another name with `as`")
}

#[cfg(test)]
mod tests {
    use engine::data::{ColumnType, Schema};
    use engine::node::harness::Harness;

    use super::*;

    fn field(name: &str, ty: ColumnType, role: Role, origin: usize) -> Field {
        Field { origin: Some(origin), ..Field::new(name, ty, role) }
    }

    fn branch(fields: Vec<Field>) -> Schema {
        let mut all = vec![field("uri", ColumnType::Text, Role::Uri, 0)];
        all.extend(fields);
        Schema { fields: all, batch: Some(4) }
    }

    fn join(inputs: Vec<Schema>) -> Result<NodeSpec, SpecError> {
        Harness::new::<Join>("{}", inputs).spec()
    }

    #[test]
    fn inherited_columns_are_one_and_the_others_add_up() {
        let spec = join(vec![
            branch(vec![
                field("width", ColumnType::Int, Role::Auxiliary, 1),
                field("a", ColumnType::Int, Role::Result, 2),
            ]),
            branch(vec![
                field("width", ColumnType::Int, Role::Result, 1),
                field("b", ColumnType::Float, Role::Result, 3),
            ]),
        ]);
        let spec = spec.unwrap();
        assert_eq!(spec.schema().to_string(), "uri text, width int, a int, b float");
        assert_eq!(spec.outputs[3].from, From::Input { input: 1, column: 2 });
        assert_eq!(spec.outputs[1].field.role, Role::Result);
        assert_eq!(spec.batch, None);
    }

    #[test]
    fn a_collision_names_both_branches() {
        for (ty, origin) in [(ColumnType::Int, 3), (ColumnType::Float, 2)] {
            let error = join(vec![
                branch(vec![field("labels", ColumnType::Int, Role::Result, 2)]),
                branch(vec![field("labels", ty, Role::Result, origin)]),
            ]);
            assert_eq!(error.unwrap_err().message, "both `input_0` and `input_1` give a column `labels`");
        }
    }

    #[test]
    fn one_input_is_no_join() {
        assert!(join(vec![branch(vec![])]).is_err());
    }
}

//! Which columns a sink writes.

use engine::data::{ColumnType, DType, Field, Role, Schema};
use engine::node::{SpecError, unknown_column};

/// The indices of the columns to write as text: those that `columns` names in that order, or else where the row comes from
/// and the results.
pub(super) fn chosen(input: &Schema, columns: Option<&[String]>) -> Result<Vec<usize>, SpecError> {
    chosen_of(input, columns, is_writable)
}

/// The same for a sink that can write every column, bytes as well.
pub(super) fn chosen_of_all(input: &Schema, columns: Option<&[String]>) -> Result<Vec<usize>, SpecError> {
    chosen_of(input, columns, |_| true)
}

fn chosen_of(
    input: &Schema,
    columns: Option<&[String]>,
    is_writable: fn(&ColumnType) -> bool,
) -> Result<Vec<usize>, SpecError> {
    let Some(names) = columns else {
        // Nobody leads the bytes of files to a sink but to have them written: decoding uses them up.
        let is_wanted = |field: &Field| field.role != Role::Auxiliary || field.ty == ColumnType::Bytes;
        let is_default = |field: &Field| is_wanted(field) && is_writable(&field.ty) && !is_pixels(&field.ty);
        let is_chosen = |(column, field): (usize, &Field)| is_default(field).then_some(column);
        let chosen: Vec<_> = input.fields.iter().enumerate().filter_map(is_chosen).collect();
        if chosen.is_empty() {
            let message = format!("there is nothing to write: the input gives {}", input.names());
            return Err(SpecError::new(message).label("say which columns with `columns`"));
        }
        return Ok(chosen);
    };
    if names.is_empty() {
        return Err(SpecError::new("`columns` is empty, so there is nothing to write").at(&["columns"]));
    }
    let mut chosen = Vec::with_capacity(names.len());
    for (name_idx, name) in names.iter().enumerate() {
        let at = name_idx.to_string();
        let Some(column) = input.index_of(name) else {
            return Err(unknown_column(input, name).at(&["columns", &at]));
        };
        if !is_writable(&input.fields[column].ty) {
            let writable = input.fields.iter().filter(|field| is_writable(&field.ty));
            let writable: Vec<_> = writable.map(|field| format!("`{}`", field.name)).collect();
            let message =
                format!("the column `{name}` is {}, which cannot be written as text", input.fields[column].ty);
            let error = SpecError::new(message).at(&["columns", &at]);
            return Err(error.note(format!("columns that can: {}", writable.join(", "))));
        }
        if chosen.contains(&column) {
            return Err(SpecError::new(format!("the column `{name}` is named twice")).at(&["columns", &at]));
        }
        chosen.push(column);
    }
    Ok(chosen)
}

/// Tensors of bytes are pixels: they are written only where they are named.
pub(super) fn is_pixels(ty: &ColumnType) -> bool {
    matches!(ty, ColumnType::Tensor { dtype: DType::U8, .. })
}

fn is_writable(ty: &ColumnType) -> bool {
    match ty {
        ColumnType::Bytes => false,
        ColumnType::List(fields) => fields.iter().all(|(_, ty)| is_writable(ty)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use engine::data::Dim;

    use super::*;

    fn schema() -> Schema {
        let tensor = |dtype| ColumnType::Tensor { dtype, shape: vec![Dim::Fixed(2)] };
        let fields = vec![
            Field::new("id", ColumnType::Text, Role::Auxiliary),
            Field::new("uri", ColumnType::Text, Role::Uri),
            Field::new("bytes", ColumnType::Bytes, Role::Result),
            Field::new("pixels", tensor(DType::U8), Role::Result),
            Field::new("width", ColumnType::Int, Role::Auxiliary),
            Field::new("logits", tensor(DType::F32), Role::Result),
        ];
        Schema { fields, batch: None }
    }

    #[test]
    fn by_default_it_is_where_the_row_comes_from_and_the_results() {
        assert_eq!(chosen(&schema(), None), Ok(vec![1, 5]));
    }

    #[test]
    fn named_columns_come_in_the_order_named() {
        let names = ["width", "pixels", "id"].map(str::to_owned);
        assert_eq!(chosen(&schema(), Some(&names)), Ok(vec![4, 3, 0]));
    }

    #[test]
    fn unknown_and_unwritable_columns_are_mistakes_at_their_place() {
        let check = |names: &[&str], at: &[&str], message: &str| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let error = chosen(&schema(), Some(&names)).unwrap_err();
            assert_eq!(
                (error.option, error.message.as_str()),
                (at.iter().map(|key| (*key).to_owned()).collect(), message)
            );
        };
        check(&["uri", "widht"], &["columns", "1"], "there is no column `widht`");
        check(&["bytes"], &["columns", "0"], "the column `bytes` is bytes, which cannot be written as text");
        check(&["uri", "uri"], &["columns", "1"], "the column `uri` is named twice");
        check(&[], &["columns"], "`columns` is empty, so there is nothing to write");
        let nothing = Schema { fields: vec![schema().fields[2].clone()], batch: None };
        assert!(chosen(&nothing, None).unwrap_err().message.contains("nothing to write"));
    }
}

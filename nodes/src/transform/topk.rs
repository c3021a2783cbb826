//! `transform.topk`: from a model's logits to its best labels.

use std::num::NonZeroUsize;
use std::sync::Arc;

use engine::data::{ColumnType, Field, Reject, Role, RowMut, RowRef, code};
use engine::node::{
    BuildCx, Fault, FileStamp, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage, find_column, normalised,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::labels;

/// The `k` classes with the highest score. Scores are the softmax of the logits: they are positive and sum to 1 over all
/// classes. Of equal classes the one with the lower index comes first.
///
/// # Input
/// A column of logits: a float tensor of one dimension, one number a class. It is used up.
///
/// # Output
/// `labels`: a list of `{index, label, score}`, best first; without `labels`, of `{index, score}`.
///
/// # Example
/// ```yaml
/// labels: {kind: transform.topk, with: {k: 3, labels: imagenet1k}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopK {
    /// How many classes. Default 5, or all where there are fewer.
    k: Option<NonZeroUsize>,
    /// The classes' names: `imagenet1k`, or the path of a file that has one a line, or of a `.json` file with a list, an
    /// object from index to name, or such an object under `id2label`. Absent: only indices.
    labels: Option<String>,
    /// The column of logits. Default: the only one that fits.
    column: Option<String>,
    /// The name of the new column.
    #[serde(default = "default_as", rename = "as")]
    output: String,
}

const DEFAULT_K: usize = 5;

fn default_as() -> String {
    "labels".to_owned()
}

struct Resolved {
    column: usize,
    k: usize,
    n_classes: usize,
}

impl TopK {
    fn resolve(&self, input: &engine::data::Schema) -> Result<Resolved, SpecError> {
        let hint = "put an `infer` node between them";
        let fits = |field: &Field| n_classes(&field.ty).is_some();
        let column = find_column(input, self.column.as_deref(), "a column of logits", hint, fits)?;
        let n_classes = n_classes(&input.fields[column].ty).expect("the column was found by it");
        let k = match self.k {
            Some(k) if k.get() > n_classes => {
                let message = format!("`k` is {k}, and `{}` has {n_classes} classes", input.fields[column].name);
                return Err(SpecError::new(message).at(&["k"]).label(format!("at most {n_classes}")));
            }
            Some(k) => k.get(),
            None => DEFAULT_K.min(n_classes),
        };
        Ok(Resolved { column, k, n_classes })
    }

    fn names(&self, n_classes: usize, base: &std::path::Path) -> Result<Option<Vec<Arc<str>>>, SpecError> {
        let Some(labels) = &self.labels else { return Ok(None) };
        let names = labels::read(labels, &base.join(labels)).map_err(|error| error.at(&["labels"]))?;
        if names.len() != n_classes {
            let message = format!("`{labels}` has {} labels, and the model has {n_classes} classes", names.len());
            return Err(SpecError::new(message).at(&["labels"]));
        }
        Ok(Some(names))
    }
}

/// The number of classes, if columns of this type can hold logits.
fn n_classes(ty: &ColumnType) -> Option<usize> {
    match (ty.fixed_shape()?, ty) {
        ((dtype, shape), _) if dtype.is_float() && shape.len() == 1 && shape[0] > 0 => Some(shape[0]),
        _ => None,
    }
}

impl NodeKind for TopK {
    const NAME: &'static str = "transform.topk";
    const EXAMPLE: &'static str = "labels: {kind: transform.topk, with: {k: 3, labels: imagenet1k}}";
}

impl Node for TopK {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let resolved = self.resolve(cx.input())?;
        let names = self.names(resolved.n_classes, cx.base)?;
        let mut fields = vec![(Arc::from("index"), ColumnType::Int)];
        if names.is_some() {
            fields.push((Arc::from("label"), ColumnType::Text));
        }
        fields.push((Arc::from("score"), ColumnType::Float));
        let detail = match &self.labels {
            Some(labels) => format!("{}, {labels}", resolved.k),
            None => resolved.k.to_string(),
        };
        let file = self.labels.as_ref().filter(|labels| *labels != labels::IMAGENET1K_NAME);
        let files = file.and_then(|file| FileStamp::of(&cx.base.join(file))).into_iter().collect();
        let spec = NodeSpec { batch: cx.input().batch, files, ..NodeSpec::passing(cx.input(), &[resolved.column]) };
        Ok(spec
            .with_new(&self.output, ColumnType::List(fields), Role::Result)
            .map_err(|error| error.at(&["as"]))?
            .with_detail(detail))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let permanent = |error: SpecError| Fault::permanent(error.to_string());
        let Resolved { column, k, n_classes } = self.resolve(cx.input()).map_err(permanent)?;
        let names = self.names(n_classes, cx.base).map_err(permanent)?;
        Ok(Stage::Rows(Arc::new(Best { column, k, names })))
    }

    fn reads(&self, base: &std::path::Path, path: &std::path::Path) -> bool {
        let file = self.labels.as_ref().filter(|labels| *labels != labels::IMAGENET1K_NAME);
        file.is_some_and(|file| normalised(&base.join(file)) == normalised(path))
    }
}

struct Best {
    column: usize,
    k: usize,
    names: Option<Vec<Arc<str>>>,
}

impl RowMap for Best {
    fn map_row(&self, row: RowRef<'_>, out: &mut RowMut<'_>) -> Result<(), Reject> {
        let logits = row.tensor(self.column);
        if !logits.is_finite() {
            return Err(Reject::new(code::NON_FINITE, "the logits have a NaN or an infinity in them"));
        }
        let logits = logits.to_f32();
        let best = best(&logits, self.k);
        let largest = f64::from(logits[best[0]]);
        let exp = |logit: f32| (f64::from(logit) - largest).exp();
        let sum: f64 = logits.iter().map(|&logit| exp(logit)).sum();
        out.list(0, best.len(), |rank, item| {
            let index = best[rank];
            let mut output = 0;
            item.int(output, index as i64);
            if let Some(names) = &self.names {
                output += 1;
                item.text(output, &names[index]);
            }
            item.float(output + 1, shortest((exp(logits[index]) / sum) as f32));
        });
        Ok(())
    }
}

/// The indices of the `k` largest, largest first, of equals the first.
fn best(values: &[f32], k: usize) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(k + 1);
    for (index, &value) in values.iter().enumerate() {
        if best.len() == k && value <= values[best[k - 1]] {
            continue;
        }
        let rank = best.partition_point(|&better| values[better] >= value);
        best.insert(rank, index);
        best.truncate(k);
    }
    best
}

/// The number whose shortest text is that of `value`: a score is single precision, and its double would be written with
/// digits that mean nothing.
fn shortest(value: f32) -> f64 {
    let mut text = ryu::Buffer::new();
    text.format_finite(value).parse().expect("a number that was written can be read")
}

#[cfg(test)]
mod tests {
    use engine::data::{Batch, Column, DType, Dim, Schema};
    use engine::node::harness::{Harness, batch};

    use super::*;

    fn schema(n_classes: usize) -> Schema {
        let ty = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(n_classes)] };
        let fields = vec![Field::new("uri", ColumnType::Text, Role::Uri), Field::new("logits", ty, Role::Result)];
        Schema { fields, batch: Some(8) }
    }

    fn rows(logits: &[&[f32]]) -> Batch {
        batch(&schema(logits[0].len()), 0, logits.len(), |index, out| {
            let values = logits[index as usize];
            out.text(0, "a.jpg");
            let mut buffer = out.alloc(DType::F32, &[values.len()]);
            buffer.bytes_mut()[..values.len() * 4].copy_from_slice(bytemuck::cast_slice(values));
            out.tensor(1, DType::F32, &[values.len()], buffer);
        })
    }

    fn topk(with: &str, logits: &[&[f32]]) -> Vec<Vec<(i64, f64)>> {
        let mapped = Harness::new::<TopK>(with, vec![schema(logits[0].len())]).map(&rows(logits));
        let Column::List(list) = &mapped.columns[0] else { panic!() };
        let fields: Vec<_> = list.fields().collect();
        let (Column::Int(index), Column::Float(score)) = (fields[0].1, fields[fields.len() - 1].1) else { panic!() };
        let row = |row_idx| list.range(row_idx).map(|item| (index.values()[item], score.values()[item])).collect();
        mapped.passed.iter().map(|&row_idx| row(row_idx)).collect()
    }

    #[test]
    fn scores_are_the_softmax_and_the_best_come_first() {
        // exp(ln 1), exp(ln 2), exp(ln 5) over their sum of 8.
        let logits = [1f32.ln(), 5f32.ln(), 2f32.ln()];
        assert_eq!(topk("{k: 3}", &[&logits]), [[(1, 0.625), (2, 0.25), (0, 0.125)]]);
        // A common offset changes nothing, even where exp would overflow.
        assert_eq!(topk("{k: 2}", &[&[1000., 1000., -1000.]]), [[(0, 0.5), (1, 0.5)]]);
    }

    #[test]
    fn of_equals_the_first_comes_first() {
        let ranks = topk("{k: 3}", &[&[0., 7., 7., 0., 7.], &[1., 1., 1., 1., 1.]]);
        assert_eq!(ranks[0].iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(ranks[1], [(0, 0.2), (1, 0.2), (2, 0.2)]);
    }

    #[test]
    fn a_score_has_the_digits_of_single_precision() {
        let [row] = &topk("{k: 1}", &[&[0.1, 0.4, -0.7]])[..] else { panic!() };
        let text = row[0].1.to_string();
        assert!(text.len() <= 11, "{text}");
        let exact = 0.4f64.exp() / (0.1f64.exp() + 0.4f64.exp() + (-0.7f64).exp());
        assert!((row[0].1 - exact).abs() < 1e-7);
        assert_eq!(text.parse::<f32>().unwrap().to_string(), text);
    }

    #[test]
    fn logits_that_are_no_numbers_are_a_reject() {
        let input = rows(&[&[1., 2.], &[f32::NAN, 1.], &[f32::INFINITY, 1.]]);
        let mapped = Harness::new::<TopK>("{k: 1}", vec![schema(2)]).map(&input);
        assert_eq!(mapped.passed, [0]);
        assert!(mapped.rejects.iter().all(|(_, reject)| reject.code == code::NON_FINITE));
        assert_eq!(mapped.rejects.len(), 2);
    }

    #[test]
    fn labels_are_those_of_the_classes() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("names.txt"), "cat\ndog\n").unwrap();
        let node =
            Harness::new::<TopK>("{k: 1, labels: names.txt, as: best}", vec![schema(2)]).in_folder(folder.path());
        let spec = node.spec().unwrap();
        assert_eq!(spec.schema().to_string(), "uri text, best list<index,label,score>");
        assert_eq!(spec.batch, Some(8));
        let mapped = node.map(&rows(&[&[1., 2.]]));
        let Column::List(list) = &mapped.columns[0] else { panic!() };
        let Some(("label", Column::Text(label))) = list.fields().nth(1) else { panic!() };
        assert_eq!(label.get(0), "dog");
        assert!(node.node().reads(folder.path(), &folder.path().join("names.txt")));
    }

    #[test]
    fn mistakes_name_the_option_and_both_numbers() {
        let check = |with: &str, n_classes: usize, option: &[&str], message: &str| {
            let error = Harness::new::<TopK>(with, vec![schema(n_classes)]).spec().unwrap_err();
            assert_eq!(error.option, option, "{error}");
            assert_eq!(error.message, message);
        };
        check("{labels: imagenet1k}", 10, &["labels"], "`imagenet1k` has 1000 labels, and the model has 10 classes");
        check("{k: 11}", 10, &["k"], "`k` is 11, and `logits` has 10 classes");
        check("{column: uri}", 10, &["column"], "the column `uri` is text, and a column of logits is needed");
        let spec = Harness::new::<TopK>("{as: uri}", vec![schema(10)]).spec();
        assert_eq!(spec.unwrap_err().message, "there is a column `uri` already");
        assert_eq!(Harness::new::<TopK>("{}", vec![schema(3)]).spec().unwrap().detail, "3");
    }
}

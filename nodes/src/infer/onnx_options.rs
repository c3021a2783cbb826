//! What the options of `infer` mean for an ONNX model.

use std::path::Path;

use engine::data::Role;
use engine::node::{NodeSpec, SpecCx, SpecError};

use super::model_ref::ModelRef;
use super::onnx_model::{Fitted, OnnxModel, Said};
use super::{Backend, Infer, OutputsOption, Precision, image_size};

impl Infer {
    /// The ONNX model, where that is what the node runs.
    ///
    /// # Errors
    /// A file that cannot be used, and options that go with the other kind of model.
    pub(super) fn onnx(&self, base: &Path) -> Result<Option<OnnxModel>, SpecError> {
        let file = match &self.model {
            _ if self.backend == Some(Backend::Candle) => None,
            ModelRef::Folder(written) if self.backend.is_some() || !self.model.has_weights(base) => {
                OnnxModel::find(written, base).map_err(|error| error.at(&["model"]))?
            }
            _ => None,
        };
        let Some(file) = file else {
            if self.backend == Some(Backend::Onnx) {
                return Err(SpecError::new("`backend: onnx` needs a `.onnx` file, or a folder with one").at(&["model"]));
            }
            let onnx_only = [
                ("channels", self.channels.is_some()),
                ("layout", self.layout.is_some()),
                ("provider", self.provider.is_some()),
            ];
            for (option, said) in onnx_only {
                if said {
                    let message = format!("`{option}` is for ONNX models, and this is none");
                    return Err(SpecError::new(message).at(&[option]).label("leave it out"));
                }
            }
            if let Some(OutputsOption::Names(_)) = &self.outputs {
                let message = "a list of outputs is for ONNX models; this one has `logits` and `features`";
                return Err(SpecError::new(message).at(&["outputs"]));
            }
            return Ok(None);
        };
        if self.dtype != Precision::F32 {
            let message = "`dtype` is for weights that are read here; an ONNX model has types of its own";
            return Err(SpecError::new(message).at(&["dtype"]).label("leave it out"));
        }
        if let Some(OutputsOption::Reading(reading)) = &self.outputs {
            let name = format!("{reading:?}").to_lowercase();
            let message =
                format!("`outputs: {name}` is for models whose layers are known; an ONNX model has outputs of its own");
            return Err(SpecError::new(message).at(&["outputs"]).label("name them in a list, or leave it out for all"));
        }
        if self.l2_normalize {
            let message = "`l2_normalize` is for `outputs: features`, which an ONNX model does not have";
            return Err(SpecError::new(message).at(&["l2_normalize"]).label("leave it out"));
        }
        OnnxModel::read(file).map(Some).map_err(|error| error.at(&["model"]))
    }

    pub(super) fn fitted(&self, model: &OnnxModel) -> Result<Fitted, SpecError> {
        let outputs = match &self.outputs {
            Some(OutputsOption::Names(names)) => Some(&names[..]),
            _ => None,
        };
        let said = Said {
            channels: self.channels.unwrap_or_default(),
            layout: self.layout.unwrap_or_default(),
            normalize: self.normalize,
            outputs,
        };
        model.fit(&said)
    }

    pub(super) fn onnx_spec(&self, model: &OnnxModel, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let fitted = self.fitted(model)?;
        let column = self.column(cx.input())?;
        let field = &cx.input().fields[column];
        let size = image_size(field)?;
        for (side, wanted) in size.into_iter().zip(fitted.size) {
            if wanted.is_some_and(|wanted| wanted != side) {
                let [height, width] = fitted.size.map(|side| side.map_or("any".to_owned(), |side| side.to_string()));
                let message = format!(
                    "`{}` takes images of {width}×{height}, and `{}` has {}×{}",
                    model.name(),
                    field.name,
                    size[1],
                    size[0]
                );
                return Err(SpecError::new(message).label("give the decode node this size by `resize` and `crop`"));
            }
        }
        let mut spec = NodeSpec::passing(cx.input(), &[column]);
        if self.output.is_some() && fitted.outputs.len() > 1 {
            let message = format!("`as` names one column, and `{}` gives {}", model.name(), fitted.outputs.len());
            return Err(SpecError::new(message).at(&["as"]).label("leave it out, or choose one with `outputs: […]`"));
        }
        for output in &fitted.outputs {
            let name = self.output.as_deref().unwrap_or(&output.name);
            spec = spec.with_new(name, output.ty(), Role::Result).map_err(|error| error.at(&["as"]))?;
        }
        let detail = format!("{}, {}", model.name(), fitted.prefix.normalize);
        Ok(spec.with_detail(detail).with_need(model.need(size, self.device.clone())))
    }
}

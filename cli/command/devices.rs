//! `flowgpu devices`: what this machine has to run models on.

mod advice;
mod text;

use engine::config::Size;
use engine::schedule::{CONTEXT_BYTES, Inventory};
use nodes::onnx::{Found, Places};
use serde_json::{Value as Json, json};

use self::advice::Advice;
use super::Format;
use crate::failure::{Failure, exit};
use crate::output;
use crate::progress::Terminal;

const AFTER_HELP: &str = "\
Examples:
  flowgpu devices
  flowgpu devices --model-memory 5GiB
  flowgpu devices --format json

GPUs are those that CUDA_VISIBLE_DEVICES leaves visible, numbered as `device: cuda:N` counts them. Available is what \
is free without what a worker takes before its first model. The driver's library is libnvidia-ml.so.1; FLOWGPU_NVML \
names another one. ONNX Runtime runs `.onnx` models; FLOWGPU_ONNXRUNTIME names its library, which otherwise is looked for beside \
the program and in the Python environment that is active.";

/// Shows the devices.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Devices {
    /// Say how many workers fit on each GPU if the models take so much, such as 5GiB: weights and activations of a batch
    #[arg(long, value_name = "SIZE")]
    model_memory: Option<Size>,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Devices {
    pub(super) fn run(&self) -> Result<u8, Failure> {
        let inventory = Inventory::read();
        let advice = Advice::of(&inventory, self.model_memory.map(Size::bytes));
        let onnx = Places::of_process().find();
        let text = match self.format {
            Format::Text => text::text(&inventory, &advice, &onnx, &Terminal::stdout()),
            Format::Json => super::json(&json(&inventory, &advice, onnx.ok())),
        };
        output::answer(&text)?;
        Ok(exit::DONE)
    }
}

fn json(inventory: &Inventory, advice: &Advice, onnx: Option<Found>) -> Json {
    let gpus = inventory.gpus.iter().zip(&advice.workers).map(|(gpu, workers)| {
        // A struct of named fields is an object.
        let mut shown = json!(gpu);
        shown["device"] = json!(format!("cuda:{}", gpu.index));
        shown["available"] = json!(advice::available(gpu));
        shown["workers"] = json!(workers);
        shown
    });
    let mut shown = json!(inventory);
    shown["gpus"] = gpus.collect();
    shown["overhead"] = json!(CONTEXT_BYTES);
    shown["model_memory"] = json!(advice.model_memory);
    shown["totals"] = json!({
        "gpus": inventory.gpus.len(),
        "memory": advice::sum(inventory, |gpu| gpu.total),
        "free": advice::sum(inventory, |gpu| gpu.free),
        "available": advice::sum(inventory, advice::available),
        "workers": advice.n_workers(),
    });
    shown["command"] = json!(advice.command);
    shown["onnxruntime"] =
        json!(onnx.map(|found| json!({"path": found.path, "version": found.version(), "by": found.by.to_string()})));
    shown
}

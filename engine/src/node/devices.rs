//! Which devices models may run on: `auto`, `cpu`, `cuda`, `cuda:0,2`.

use std::fmt;

/// The devices that models may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Devices {
    /// The GPUs where there are some, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// These GPUs, in the order written, each once; none named means all.
    Cuda(Vec<u32>),
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(indices) if indices.is_empty() => f.write_str("cuda"),
            Self::Cuda(indices) => {
                let indices: Vec<String> = indices.iter().map(u32::to_string).collect();
                write!(f, "cuda:{}", indices.join(","))
            }
        }
    }
}

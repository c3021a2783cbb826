//! What an error of CUDA means for the batch, the model and the process.
//!
//! The same want of memory comes from the driver, from cuBLAS or cuRAND, inside of candle's error with or without a
//! backtrace around it, or only as text, where candle kept no more. All pass through [`model_error`].

use std::error::Error;

use candle_core::cuda_backend::CudaError;
use cudarc::cublas::result::CublasError;
use cudarc::cublas::sys::cublasStatus_t;
use cudarc::curand::result::CurandError;
use cudarc::curand::sys::curandStatus_t;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use engine::node::ModelError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    OutOfMemory,
    /// Every further call of this process fails in the same way.
    DeviceLost,
    Failed,
}

/// Errors after which the driver refuses all further work of the process, by CUDA's documentation, or the GPU is gone.
const LOST: [CUresult; 21] = [
    CUresult::CUDA_ERROR_DEINITIALIZED,
    CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE,
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUresult::CUDA_ERROR_CONTAINED,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUresult::CUDA_ERROR_ASSERT,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK,
    CUresult::CUDA_ERROR_SYSTEM_NOT_READY,
    CUresult::CUDA_ERROR_MPS_RPC_FAILURE,
    CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED,
    CUresult::CUDA_ERROR_EXTERNAL_DEVICE,
    CUresult::CUDA_ERROR_UNKNOWN,
];

/// What is looked for in an error of which there is only text.
const OUT_OF_MEMORY_TEXTS: [&str; 4] =
    ["ERROR_OUT_OF_MEMORY", "STATUS_ALLOC_FAILED", "STATUS_ALLOCATION_FAILED", "out of memory"];

/// `error`, or whatever stands behind it, as the engine's error of a model.
pub fn model_error(error: &(dyn Error + 'static)) -> ModelError {
    let text = one_line(error);
    match verdict(error) {
        Verdict::OutOfMemory => ModelError::OutOfMemory(text),
        Verdict::DeviceLost => ModelError::DeviceLost(text),
        Verdict::Failed => ModelError::Failed(text),
    }
}

/// The first line of what an error says: candle puts a backtrace into the others.
fn one_line(error: &(dyn Error + 'static)) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn verdict(error: &(dyn Error + 'static)) -> Verdict {
    let mut last = None;
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(verdict) = known(error) {
            return verdict;
        }
        last = Some(error);
        next = error.source();
    }
    last.map_or(Verdict::Failed, |error| by_text(&error.to_string()))
}

/// The verdict on one error of a chain, if its type says enough.
fn known(error: &(dyn Error + 'static)) -> Option<Verdict> {
    if let Some(error) = error.downcast_ref::<candle_core::Error>() {
        return Some(of_candle(error));
    }
    if let Some(error) = error.downcast_ref::<CudaError>() {
        return Some(of_cuda(error));
    }
    if let Some(DriverError(code)) = error.downcast_ref() {
        return Some(of_driver(*code));
    }
    if let Some(CublasError(status)) = error.downcast_ref() {
        return Some(of_cublas(*status));
    }
    if let Some(CurandError(status)) = error.downcast_ref() {
        return Some(of_curand(*status));
    }
    None
}

fn of_candle(error: &candle_core::Error) -> Verdict {
    use candle_core::Error as Candle;
    match error {
        Candle::Cuda(error) => verdict(&**error),
        Candle::WithBacktrace { inner, .. } | Candle::Context { inner, .. } | Candle::WithPath { inner, .. } => {
            of_candle(inner)
        }
        Candle::WrappedContext { wrapped, .. } => verdict(&**wrapped),
        other => by_text(&other.to_string()),
    }
}

fn of_cuda(error: &CudaError) -> Verdict {
    match error {
        CudaError::Cuda(error) | CudaError::Load { cuda: error, .. } => of_driver(error.0),
        CudaError::Cublas(error) => of_cublas(error.0),
        CudaError::Curand(error) => of_curand(error.0),
        _ => Verdict::Failed,
    }
}

fn of_driver(code: CUresult) -> Verdict {
    match code {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Verdict::OutOfMemory,
        lost if LOST.contains(&lost) => Verdict::DeviceLost,
        _ => Verdict::Failed,
    }
}

fn of_cublas(status: cublasStatus_t) -> Verdict {
    match status {
        cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED => Verdict::OutOfMemory,
        // Kernels that could not be run, for which cuBLAS gives no reason: seen after a sticky error of another kernel.
        cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED | cublasStatus_t::CUBLAS_STATUS_MAPPING_ERROR => {
            Verdict::DeviceLost
        }
        _ => Verdict::Failed,
    }
}

fn of_curand(status: curandStatus_t) -> Verdict {
    match status {
        curandStatus_t::CURAND_STATUS_ALLOCATION_FAILED => Verdict::OutOfMemory,
        curandStatus_t::CURAND_STATUS_PREEXISTING_FAILURE => Verdict::DeviceLost,
        _ => Verdict::Failed,
    }
}

fn by_text(text: &str) -> Verdict {
    if OUT_OF_MEMORY_TEXTS.iter().any(|part| text.contains(part)) {
        return Verdict::OutOfMemory;
    }
    // As `Debug` writes it, and no longer name that begins with it.
    let names = |code: CUresult| {
        let name = format!("{code:?}");
        text.match_indices(&name).any(|(at, _)| {
            let next = text[at + name.len()..].chars().next();
            !next.is_some_and(|next| next == '_' || next.is_ascii_alphanumeric())
        })
    };
    if LOST.into_iter().any(names) { Verdict::DeviceLost } else { Verdict::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another error around one, as the models' own are.
    #[derive(Debug, thiserror::Error)]
    #[error("`resnet50`: {0}")]
    struct Outer(#[source] candle_core::Error);

    fn driver(code: CUresult) -> candle_core::Error {
        candle_core::Error::Cuda(Box::new(CudaError::Cuda(DriverError(code))))
    }

    fn is_out_of_memory(error: &(dyn Error + 'static)) -> bool {
        matches!(model_error(error), ModelError::OutOfMemory(_))
    }

    fn is_lost(error: &(dyn Error + 'static)) -> bool {
        matches!(model_error(error), ModelError::DeviceLost(_))
    }

    #[test]
    fn want_of_memory_is_seen_in_all_its_disguises() {
        let plain = || driver(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(is_out_of_memory(&plain()));
        assert!(is_out_of_memory(&DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)));
        assert!(is_out_of_memory(&Outer(plain())));
        let backtrace = Box::new(std::backtrace::Backtrace::force_capture());
        assert!(is_out_of_memory(&candle_core::Error::WithBacktrace { inner: Box::new(plain()), backtrace }));
        assert!(is_out_of_memory(&plain().context("in a layer")));
        let module_name = "conv".to_owned();
        let cuda = DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(is_out_of_memory(&candle_core::Error::Cuda(Box::new(CudaError::Load { cuda, module_name }))));
        for library in [
            CudaError::Cublas(CublasError(cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED)),
            CudaError::Curand(CurandError(curandStatus_t::CURAND_STATUS_ALLOCATION_FAILED)),
        ] {
            assert!(is_out_of_memory(&candle_core::Error::Cuda(Box::new(library))));
        }
        // As `synchronize` gives it: candle keeps the text alone.
        assert!(is_out_of_memory(&candle_core::Error::wrap(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY))));
        assert!(is_out_of_memory(&candle_core::Error::Msg("CUDA: out of memory".into())));
    }

    #[test]
    fn an_error_that_only_a_new_process_mends_is_a_lost_device() {
        for code in LOST {
            assert!(is_lost(&Outer(driver(code))), "{code:?}");
            assert!(is_lost(&candle_core::Error::wrap(DriverError(code))), "{code:?} as text");
        }
        let blas = CublasError(cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED);
        assert!(is_lost(&candle_core::Error::Cuda(Box::new(CudaError::Cublas(blas)))));
    }

    #[test]
    fn other_errors_cost_the_batch_alone() {
        let failed = |error: &(dyn Error + 'static)| matches!(model_error(error), ModelError::Failed(_));
        assert!(failed(&driver(CUresult::CUDA_ERROR_INVALID_VALUE)));
        assert!(failed(&driver(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)));
        assert!(failed(&candle_core::Error::wrap(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE))));
        assert!(failed(&candle_core::Error::Msg("shape mismatch in matmul".into())));
        // A longer name that begins like a lost device's.
        assert!(failed(&candle_core::Error::Msg("CUDA_ERROR_LAUNCH_FAILED_OTHERWISE".into())));
    }

    #[test]
    fn what_is_said_is_one_line() {
        let inner = Box::new(driver(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        let backtrace = Box::new(std::backtrace::Backtrace::force_capture());
        let error = candle_core::Error::WithBacktrace { inner, backtrace };
        let ModelError::OutOfMemory(text) = model_error(&error) else {
            panic!("out of memory");
        };
        assert!(text.contains("CUDA_ERROR_OUT_OF_MEMORY") && !text.contains('\n'), "{text}");
    }
}

//! The layers' kernels: what they are called with, and on how many threads.
//!
//! Each checks that its tensors have the size that the kernel reaches over. All run on the stream of their tensors'
//! device, and allocate there.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaStorage, WrapErr};
use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Storage, Tensor, bail};
use cudarc::driver::{CudaSlice, CudaView, DeviceRepr, LaunchConfig, PushKernelArg};
use half::{bf16, f16};

use super::PTX;
use crate::models::layers::{Along, Axis, BiasActivation, Depthwise, Im2Col, Join};

/// The name under which a device keeps the compiled kernels.
const MODULE: &str = "flowgpu";
/// Threads of a block at most: few, so that small planes don't leave many idle.
const MAX_THREADS: u32 = 256;
/// Threads that a GPU runs in step.
const WARP: u32 = 32;
/// Blocks that a grid may have along its second axis.
const MAX_BLOCKS_Y: usize = 65_535;

/// A type that the kernels are compiled for.
trait Element: CudaDType + DeviceRepr {
    const SUFFIX: &'static str;
}

impl Element for f32 {
    const SUFFIX: &'static str = "f32";
}

impl Element for f16 {
    const SUFFIX: &'static str = "f16";
}

impl Element for bf16 {
    const SUFFIX: &'static str = "bf16";
}

macro_rules! by_type {
    ($dtype:expr, $run:ident($($argument:expr),*)) => {
        match $dtype {
            DType::F32 => $run::<f32>($($argument),*),
            DType::F16 => $run::<f16>($($argument),*),
            DType::BF16 => $run::<bf16>($($argument),*),
            other => bail!("there is no kernel for {other:?}"),
        }
    };
}

/// Bytes of images `[rows, height, width, 3]` as numbers `[rows, 3, height, width]` of `dtype`, each byte looked up in
/// its channel's row of `tables`, f32 `[3, 256]`.
pub(crate) fn planes(pixels: &Tensor, tables: &Tensor, dtype: DType) -> Result<Tensor> {
    pixels.apply_op2_no_bwd(tables, &Planes { dtype })
}

struct Planes {
    dtype: DType,
}

impl CustomOp2 for Planes {
    fn name(&self) -> &'static str {
        "planes"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("pixels are normalised elsewhere on the CPU")
    }

    fn cuda_fwd(
        &self,
        pixels: &CudaStorage,
        pixels_layout: &Layout,
        tables: &CudaStorage,
        tables_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (n_rows, height, width, n_channels) = pixels_layout.shape().dims4()?;
        if n_channels != 3 || tables_layout.dims() != [3, 256] {
            bail!("images {:?} under tables {:?}", pixels_layout.dims(), tables_layout.dims());
        }
        let shape = Shape::from((n_rows, 3, height, width));
        let tables = view::<f32>(tables, tables_layout)?;
        let pixels = (view::<u8>(pixels, pixels_layout)?, &pixels.device);
        let out = by_type!(self.dtype, planes_of(pixels, tables, n_rows, height * width))?;
        Ok((out, shape))
    }
}

fn planes_of<T: Element>(
    (pixels, device): (CudaView<'_, u8>, &CudaDevice),
    tables: CudaView<'_, f32>,
    n_rows: usize,
    n_places: usize,
) -> Result<CudaStorage> {
    let mut out = unwritten::<T>(device, n_rows * 3 * n_places)?;
    let (n_planes, n_places) = (n_rows as u64, count(n_places)?);
    let function = device.get_or_load_custom_func(&name::<T>("planes"), MODULE, PTX)?;
    if let Some(grid) = grid(n_rows, n_places) {
        let mut launch = function.builder();
        launch.arg(&n_planes).arg(&n_places).arg(&pixels).arg(&tables).arg(&mut out);
        // SAFETY: the arguments are the kernel's in number, order and type; it reads three bytes and writes three
        // numbers for each place of each row, which `pixels` (by its shape) and `out` have, and `tables` has all bytes.
        unsafe { launch.launch(grid) }.w()?;
    }
    Ok(CudaStorage::wrap_cuda_slice(out, device.clone()))
}

/// [`Im2Col`] on the device.
pub(crate) fn im2col(op: &Im2Col, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
    by_type!(storage.dtype(), im2col_of(op, storage, layout))
}

fn im2col_of<T: Element>(op: &Im2Col, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
    let (n_rows, n_channels, height, width) = layout.shape().dims4()?;
    check_axes(op.y, op.x, height, width)?;
    let images = view::<T>(storage, layout)?;
    let n_taps = op.kernel * op.kernel;
    let n_windows = op.y.n_out * op.x.n_out;
    let n_planes = n_rows * n_channels * n_taps;
    let mut columns = unwritten::<T>(&storage.device, n_planes * n_windows)?;
    let window = Window::new(op.y, op.x, op.kernel, op.stride)?;
    let function = storage.device.get_or_load_custom_func(&name::<T>("im2col"), MODULE, PTX)?;
    if let Some(grid) = grid(n_planes, count(n_windows)?) {
        let n_planes = n_planes as u64;
        let mut launch = function.builder();
        launch.arg(&n_planes);
        window.figures.iter().for_each(|figure| {
            launch.arg(figure);
        });
        launch.arg(&images).arg(&mut columns);
        // SAFETY: the arguments are the kernel's in number, order and type; it reads only inside of each image, of which
        // `images` has one for each row and channel, and writes each window of each plane, for which `columns` was made.
        unsafe { launch.launch(grid) }.w()?;
    }
    let shape = Shape::from((n_rows, n_channels * n_taps, n_windows));
    Ok((CudaStorage::wrap_cuda_slice(columns, storage.device.clone()), shape))
}

/// [`Depthwise`] on the device.
pub(crate) fn depthwise(op: &Depthwise<'_>, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
    by_type!(storage.dtype(), depthwise_of(op, storage, layout))
}

fn depthwise_of<T: Element>(
    op: &Depthwise<'_>,
    storage: &CudaStorage,
    layout: &Layout,
) -> Result<(CudaStorage, Shape)> {
    let (n_rows, n_channels, height, width) = layout.shape().dims4()?;
    check_axes(op.y, op.x, height, width)?;
    let (weight, bias) = (op.weight.tensor(), op.bias.tensor());
    if bias.elem_count() != n_channels || weight.elem_count() != n_channels * op.kernel * op.kernel {
        bail!("{n_channels} channels under {} filters", bias.elem_count());
    }
    let (weight, weight_layout) = weight.storage_and_layout();
    let (bias, bias_layout) = bias.storage_and_layout();
    let weight = view::<T>(on_cuda(&weight)?, weight_layout)?;
    let bias = view::<T>(on_cuda(&bias)?, bias_layout)?;
    let images = view::<T>(storage, layout)?;
    let n_windows = op.y.n_out * op.x.n_out;
    let n_planes = n_rows * n_channels;
    let mut out = unwritten::<T>(&storage.device, n_planes * n_windows)?;
    let window = Window::new(op.y, op.x, op.kernel, op.stride)?;
    let (channels, activation) = (count(n_channels)?, op.activation.code());
    let function = storage.device.get_or_load_custom_func(&name::<T>("depthwise"), MODULE, PTX)?;
    if let Some(grid) = grid(n_planes, count(n_windows)?) {
        let n_planes = n_planes as u64;
        let mut launch = function.builder();
        launch.arg(&n_planes).arg(&channels);
        window.figures.iter().for_each(|figure| {
            launch.arg(figure);
        });
        launch.arg(&activation).arg(&images).arg(&weight).arg(&bias).arg(&mut out);
        // SAFETY: the arguments are the kernel's in number, order and type; it reads only inside of each image, one filter
        // and one bias for each channel (their numbers were checked), and writes each window of each plane of `out`.
        unsafe { launch.launch(grid) }.w()?;
    }
    let shape = Shape::from((n_rows, n_channels, op.y.n_out, op.x.n_out));
    Ok((CudaStorage::wrap_cuda_slice(out, storage.device.clone()), shape))
}

/// The pool of [`max_pool_3x3_stride_2`](crate::models::layers::max_pool_3x3_stride_2) on the device.
pub(crate) fn max_pool(storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
    by_type!(storage.dtype(), max_pool_of(storage, layout))
}

fn max_pool_of<T: Element>(storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
    let (n_rows, n_channels, height, width) = layout.shape().dims4()?;
    let images = view::<T>(storage, layout)?;
    let (out_height, out_width) = (height.div_ceil(2), width.div_ceil(2));
    let n_planes = n_rows * n_channels;
    let mut out = unwritten::<T>(&storage.device, n_planes * out_height * out_width)?;
    let figures = [count(height)?, count(width)?, count(out_height)?, count(out_width)?];
    let function = storage.device.get_or_load_custom_func(&name::<T>("max_pool"), MODULE, PTX)?;
    if let Some(grid) = grid(n_planes, count(out_height * out_width)?) {
        let n_planes = n_planes as u64;
        let mut launch = function.builder();
        launch.arg(&n_planes);
        figures.iter().for_each(|figure| {
            launch.arg(figure);
        });
        launch.arg(&images).arg(&mut out);
        // SAFETY: the arguments are the kernel's in number, order and type; it reads only inside of each image and writes
        // each place of each plane of `out`.
        unsafe { launch.launch(grid) }.w()?;
    }
    let shape = Shape::from((n_rows, n_channels, out_height, out_width));
    Ok((CudaStorage::wrap_cuda_slice(out, storage.device.clone()), shape))
}

/// [`BiasActivation`] on the device.
pub(crate) fn bias_activation(op: &BiasActivation<'_>, storage: &mut CudaStorage, layout: &Layout) -> Result<()> {
    by_type!(storage.dtype(), bias_activation_of(op, storage, layout))
}

fn bias_activation_of<T: Element>(op: &BiasActivation<'_>, storage: &mut CudaStorage, layout: &Layout) -> Result<()> {
    // A kernel that is told of no biases takes one for each place.
    let (n_planes, n_places, n_biases, n_expected) = match op.along {
        Along::Channels => {
            let (n_rows, n_channels, n_values) = layout.shape().dims3()?;
            (n_rows * n_channels, n_values, n_channels, n_channels)
        }
        Along::Columns => {
            let (n_rows, n_columns) = layout.shape().dims2()?;
            (n_rows, n_columns, 0, n_columns)
        }
    };
    let bias = op.bias.tensor();
    if bias.elem_count() != n_expected {
        bail!("{} biases over {:?}", bias.elem_count(), layout.shape());
    }
    let (bias, bias_layout) = bias.storage_and_layout();
    let bias = view::<T>(on_cuda(&bias)?, bias_layout)?;
    let (n_places, n_biases, activation) = (count(n_places)?, count(n_biases)?, op.activation.code());
    let function = storage.device.get_or_load_custom_func(&name::<T>("bias_activation"), MODULE, PTX)?;
    let (start, end) = contiguous(layout)?;
    let mut sums = storage.as_cuda_slice_mut::<T>()?.slice_mut(start..end);
    if let Some(grid) = grid(n_planes, n_places) {
        let n_planes = n_planes as u64;
        let mut launch = function.builder();
        launch.arg(&n_planes).arg(&n_places).arg(&n_biases).arg(&activation).arg(&mut sums).arg(&bias);
        // SAFETY: the arguments are the kernel's in number, order and type; it changes each place of each plane of `sums`,
        // which has just these by its shape, and reads biases whose number was checked.
        unsafe { launch.launch(grid) }.w()?;
    }
    Ok(())
}

/// [`Join`] on the device.
pub(crate) fn join(op: &Join, layouts: [&Layout; 2], sums: &mut CudaStorage, other: &CudaStorage) -> Result<()> {
    by_type!(sums.dtype(), join_of(op, layouts, sums, other))
}

fn join_of<T: Element>(op: &Join, layouts: [&Layout; 2], sums: &mut CudaStorage, other: &CudaStorage) -> Result<()> {
    let [layout, other_layout] = layouts;
    if layout.shape() != other_layout.shape() {
        bail!("{:?} joined by {:?}", layout.shape(), other_layout.shape());
    }
    // Any split into planes will do: one with rows of a useful length.
    let dims = layout.dims();
    let n_trailing = if dims.len() > 3 { 2 } else { 1 };
    let (leading, trailing) = dims.split_at(dims.len().saturating_sub(n_trailing));
    let (n_planes, n_places) = (leading.iter().product::<usize>(), count(trailing.iter().product())?);
    let activation = op.activation.code();
    let other = view::<T>(other, other_layout)?;
    let function = sums.device.get_or_load_custom_func(&name::<T>("join"), MODULE, PTX)?;
    let (start, end) = contiguous(layout)?;
    let mut sums = sums.as_cuda_slice_mut::<T>()?.slice_mut(start..end);
    if let Some(grid) = grid(n_planes, n_places) {
        let n_planes = n_planes as u64;
        let mut launch = function.builder();
        launch.arg(&n_planes).arg(&n_places).arg(&activation).arg(&mut sums).arg(&other);
        // SAFETY: the arguments are the kernel's in number, order and type; planes times places are the elements of both
        // tensors, which have one shape.
        unsafe { launch.launch(grid) }.w()?;
    }
    Ok(())
}

/// How a window goes over an image, as the kernels want it.
struct Window {
    /// Height, width, those of the output, kernel, stride, zeros above and to the left.
    figures: [u32; 8],
}

impl Window {
    fn new(y: Axis, x: Axis, kernel: usize, stride: usize) -> Result<Self> {
        let figures = [y.n_in, x.n_in, y.n_out, x.n_out, kernel, stride, y.before, x.before];
        let mut counted = [0; 8];
        for (counted, figure) in counted.iter_mut().zip(figures) {
            *counted = count(figure)?;
        }
        Ok(Window { figures: counted })
    }
}

fn check_axes(y: Axis, x: Axis, height: usize, width: usize) -> Result<()> {
    if (y.n_in, x.n_in) != (height, width) {
        bail!("a window over {}×{} on an image of {height}×{width}", y.n_in, x.n_in);
    }
    Ok(())
}

fn name<T: Element>(kernel: &str) -> String {
    format!("{kernel}_{}", T::SUFFIX)
}

fn count(n: usize) -> Result<u32> {
    match u32::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => bail!("{n} is more than a kernel counts to"),
    }
}

/// One thread for each place, blocks along y for planes; `None` if there is nothing to do.
fn grid(n_planes: usize, n_places: u32) -> Option<LaunchConfig> {
    if n_planes == 0 || n_places == 0 {
        return None;
    }
    let n_threads = n_places.min(MAX_THREADS).next_multiple_of(WARP);
    let n_turns = u32::try_from(n_planes.min(MAX_BLOCKS_Y)).expect("65,535 at most");
    Some(LaunchConfig {
        grid_dim: (n_places.div_ceil(n_threads), n_turns, 1),
        block_dim: (n_threads, 1, 1),
        shared_mem_bytes: 0,
    })
}

fn contiguous(layout: &Layout) -> Result<(usize, usize)> {
    match layout.contiguous_offsets() {
        Some(range) => Ok(range),
        None => bail!("a kernel needs contiguous tensors, not {layout:?}"),
    }
}

/// The elements that a layout takes in.
fn view<'a, T: CudaDType>(storage: &'a CudaStorage, layout: &Layout) -> Result<CudaView<'a, T>> {
    let (start, end) = contiguous(layout)?;
    let slice = storage.as_cuda_slice::<T>()?;
    match slice.try_slice(start..end) {
        Some(view) => Ok(view),
        None => bail!("{start}..{end} of {} elements", slice.len()),
    }
}

/// Memory for `n` elements, with unspecified content.
fn unwritten<T: Element>(device: &CudaDevice, n: usize) -> Result<CudaSlice<T>> {
    // SAFETY: every bit pattern is a value of the three types, and the kernels that take it write all of it.
    unsafe { device.alloc::<T>(n) }
}

fn on_cuda(storage: &Storage) -> Result<&CudaStorage> {
    match storage {
        Storage::Cuda(storage) => Ok(storage),
        _ => bail!("a layer's numbers are not on the GPU"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_every_plane_has_a_thread_and_grids_keep_to_their_limits() {
        for (n_planes, n_places) in [(1, 1), (7, 49), (64, 12_544), (1 << 40, 3_000_000_000)] {
            let grid = grid(n_planes, n_places).expect("something to do");
            let n_threads = u64::from(grid.grid_dim.0) * u64::from(grid.block_dim.0);
            assert!(n_threads >= u64::from(n_places) && n_threads < u64::from(n_places) + 256);
            assert!(grid.block_dim.0.is_multiple_of(32) && grid.block_dim.0 <= 1024);
            assert!(grid.grid_dim.0 < 1 << 31 && grid.grid_dim.1 <= 65_535);
        }
        assert!(grid(0, 5).is_none() && grid(5, 0).is_none());
    }

    #[test]
    fn the_compiled_kernels_have_each_name_that_is_asked_for() {
        for kernel in ["planes", "im2col", "depthwise", "max_pool", "bias_activation", "join"] {
            for name in [name::<f32>(kernel), name::<f16>(kernel), name::<bf16>(kernel)] {
                assert!(PTX.contains(&format!(".entry {name}(")), "`{name}`");
            }
        }
    }
}

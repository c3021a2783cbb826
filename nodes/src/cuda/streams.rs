//! The three streams of one model, and the events by which they wait for one another.

use std::sync::Arc;

use candle_core::CudaDevice;
use cudarc::driver::sys::{CUdeviceptr, CUevent_flags, CUmemPool_attribute};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

/// The GPU that this process sees.
pub(super) const ORDINAL: usize = 0;

/// One model's streams. The model's tensors belong to `device`, which computes on `compute`.
pub(super) struct Streams {
    pub(super) device: CudaDevice,
    pub(super) context: Arc<CudaContext>,
    pub(super) compute: Arc<CudaStream>,
    pub(super) upload: Arc<CudaStream>,
    pub(super) download: Arc<CudaStream>,
}

impl Streams {
    /// Streams of their own, with a cuBLAS handle of their own.
    pub(super) fn open() -> candle_core::Result<Self> {
        let device = CudaDevice::new_with_stream(ORDINAL)?;
        let compute = device.cuda_stream();
        let context = compute.context().clone();
        let made = [context.new_stream(), context.new_stream()];
        // SAFETY: cudarc would record an event for each use of each tensor, so that streams may share them; here only two
        // kinds of tensors meet another stream, inputs and outputs, and `CudaModel` orders both by events of its own and
        // keeps them until the host has seen the last one. All others are made, used and freed on `compute` alone.
        unsafe { device.disable_event_tracking() };
        let [upload, download] = made;
        let upload = upload.map_err(|error| candle_core::Error::Cuda(Box::new(error)))?;
        let download = download.map_err(|error| candle_core::Error::Cuda(Box::new(error)))?;
        Ok(Streams { device, context, compute, upload, download })
    }

    /// Makes the GPU the calling thread's own: needed once on each thread.
    pub(super) fn bind(&self) -> Result<(), DriverError> {
        self.context.bind_to_thread()
    }

    /// Waits until all three streams are idle: after this no copy reaches for memory of the host any more. Errors are
    /// passed over, because a GPU that fails copies nothing either.
    pub(super) fn settle(&self) {
        for stream in [&self.upload, &self.compute, &self.download] {
            let _ = stream.synchronize();
        }
    }

    /// Gives memory that no tensor uses back to the system, so that a smaller batch finds it in one piece.
    pub(super) fn release_unused(&self) -> Result<(), DriverError> {
        self.bind()?;
        // SAFETY: the device is the context's, and its default pool lives as long as the context. What is in use stays.
        unsafe { result::mem_pool::trim_to(default_pool(&self.context)?, 0) }
    }

    /// Begins to copy `bytes` to `address` on the upload stream.
    ///
    /// # Safety
    /// `address` has room for them on the device, allocated before what the upload stream waits for; `bytes` stay in
    /// place and unchanged until the copy is done.
    pub(super) unsafe fn copy_in(&self, bytes: &[u8], address: CUdeviceptr) -> Result<(), DriverError> {
        self.bind()?;
        // SAFETY: as the caller promises.
        unsafe { result::memcpy_htod_async(address, bytes, self.upload.cu_stream()) }
    }

    /// Begins to copy from `address` into `values` on the download stream.
    ///
    /// # Safety
    /// `address` has as many values on the device, written before what the download stream waits for; both stay in place
    /// until the copy is done, and nobody reads or writes `values` before.
    pub(super) unsafe fn copy_out(&self, address: CUdeviceptr, values: &mut [f32]) -> Result<(), DriverError> {
        self.bind()?;
        // SAFETY: as the caller promises.
        unsafe { result::memcpy_dtoh_async(values, address, self.download.cu_stream()) }
    }
}

/// Lets the driver keep memory that tensors gave back, instead of returning it to the system at every wait and asking for
/// it again with the next batch.
pub(super) fn keep_freed_memory(context: &CudaContext) -> Result<(), DriverError> {
    if !context.has_async_alloc() {
        return Ok(());
    }
    context.bind_to_thread()?;
    let mut all = u64::MAX;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the pool is the device's own, and this attribute's value is an unsigned number of 64 bits.
    unsafe { result::mem_pool::set_attribute(default_pool(context)?, attribute, (&raw mut all).cast()) }
}

/// # Errors
/// Where the device has no pools.
fn default_pool(context: &CudaContext) -> Result<cudarc::driver::sys::CUmemoryPool, DriverError> {
    // SAFETY: the device is one that the driver named when the context was made.
    unsafe { result::device::get_default_mem_pool(context.cu_device()) }
}

/// Where a batch is on its way, on three streams.
pub(super) struct Marks {
    pub(super) uploading: CudaEvent,
    pub(super) uploaded: CudaEvent,
    pub(super) computing: CudaEvent,
    pub(super) computed: CudaEvent,
    pub(super) downloading: CudaEvent,
    pub(super) downloaded: CudaEvent,
}

impl Marks {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let timed = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        Ok(Marks {
            uploading: timed()?,
            uploaded: timed()?,
            computing: timed()?,
            computed: timed()?,
            downloading: timed()?,
            // The one that a thread of the host waits for: it sleeps meanwhile.
            downloaded: context.new_event(Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC))?,
        })
    }

    /// Milliseconds from the first mark to each of the others. All have been passed.
    pub(super) fn elapsed_ms(&self) -> Result<[f32; 5], DriverError> {
        let since = |mark: &CudaEvent| self.uploading.elapsed_ms(mark);
        Ok([
            since(&self.uploaded)?,
            since(&self.computing)?,
            since(&self.computed)?,
            since(&self.downloading)?,
            since(&self.downloaded)?,
        ])
    }
}

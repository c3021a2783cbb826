//! Memory of the host that the GPU copies from and to by itself: only where its pages are locked do copies run beside
//! everything else.

use std::ops::Range;
use std::sync::{Arc, RwLock};

use cudarc::driver::sys::{CU_MEMHOSTREGISTER_READ_ONLY, CUdevice_attribute, cuMemHostRegister_v2 as register_pages};
use cudarc::driver::{CudaContext, DeviceRepr, DriverError, PinnedHostSlice, ValidAsZeroBits};

/// Memory of others whose pages were locked: the arenas that inputs lie in.
pub(super) struct LockedPages {
    context: Arc<CudaContext>,
    ranges: RwLock<Vec<Range<usize>>>,
}

impl LockedPages {
    pub(super) fn new(context: Arc<CudaContext>) -> Self {
        LockedPages { context, ranges: RwLock::default() }
    }

    /// Locks the pages of `memory`, which stays where it is as long as the process lives.
    pub(super) fn add(&self, memory: &'static [u8]) -> Result<(), DriverError> {
        let range = address_range(memory);
        if memory.is_empty() || self.holds(memory) {
            return Ok(());
        }
        self.context.bind_to_thread()?;
        let read_only = self
            .context
            .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)
            .is_ok_and(|supported| supported == 1);
        // Inputs may be mapped for reading alone, which a GPU that supports it must be told.
        let ways = [Some(0), read_only.then_some(CU_MEMHOSTREGISTER_READ_ONLY)];
        let mut done = Ok(());
        for flags in ways.into_iter().flatten() {
            // SAFETY: the memory is mapped for the rest of the process's life, so the driver never holds a lock on pages
            // that are gone. It only reads them: the pipeline copies from here and never to here.
            done = unsafe { register_pages(memory.as_ptr().cast_mut().cast(), memory.len(), flags) }.result();
            if done.is_ok() {
                self.ranges.write().unwrap_or_else(|poisoned| poisoned.into_inner()).push(range);
                break;
            }
        }
        done
    }

    /// Whether all of `bytes` lies in locked pages.
    pub(super) fn holds(&self, bytes: &[u8]) -> bool {
        let wanted = address_range(bytes);
        let ranges = self.ranges.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        ranges.iter().any(|range| range.start <= wanted.start && wanted.end <= range.end)
    }
}

fn address_range(bytes: &[u8]) -> Range<usize> {
    let range = bytes.as_ptr_range();
    range.start.addr()..range.end.addr()
}

/// Locked memory of our own, for what comes from or goes to memory that is not.
pub(super) struct Staging<T>(PinnedHostSlice<T>);

impl<T: DeviceRepr + ValidAsZeroBits + bytemuck::Pod> Staging<T> {
    /// Room for `len` elements, all zero.
    pub(super) fn new(context: &Arc<CudaContext>, len: usize) -> Result<Self, DriverError> {
        // SAFETY: the memory comes unwritten, and every bit pattern is a `T`; the next line writes all of it before
        // anything reads it.
        let mut memory = unsafe { context.alloc_pinned_with_flags::<T>(len, 0) }?;
        memory.as_mut_slice()?.fill(T::zeroed());
        Ok(Staging(memory))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The elements. No copy by the GPU may be under way.
    pub(super) fn as_slice(&self) -> Result<&[T], DriverError> {
        self.0.as_slice()
    }

    /// The elements, to be written or to be a copy's target. No copy by the GPU may be under way.
    pub(super) fn as_mut_slice(&mut self) -> Result<&mut [T], DriverError> {
        self.0.as_mut_slice()
    }
}

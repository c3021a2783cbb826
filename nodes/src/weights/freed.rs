//! What loading a model leaves behind in the allocator.

/// Gives memory that was freed back to the system.
///
/// Weights are read, folded and packed tensor by tensor, and glibc keeps the holes that this leaves between what stays, for
/// allocations that may never come: as much again as the weights of a ResNet-50.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function only gives pages back that hold no allocation, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

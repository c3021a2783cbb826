//! How much memory a case takes, counted where it is taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// More than any case may hold, and less than a machine for tests has: what would be beyond is refused, so the process ends
/// with its input in a file rather than with the machine.
const MOST: usize = 3 << 30;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTED: Counted = Counted;

/// The system's memory, counted.
struct Counted;

// SAFETY: everything is the system's allocator's own answer; nothing is done but counting and refusing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout is passed on.
        take(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        take(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller got the pointer from here, so from the system, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there for a moment, unless the system can do without.
        // SAFETY: the caller got the pointer from here, so from the system, with this layout.
        let new = take(size, || unsafe { System.realloc(pointer, layout, size) });
        if !new.is_null() {
            HELD.fetch_sub(layout.size(), Relaxed);
        }
        new
    }
}

fn take(size: usize, from_system: impl FnOnce() -> *mut u8) -> *mut u8 {
    let held = HELD.fetch_add(size, Relaxed) + size;
    if held > MOST {
        HELD.fetch_sub(size, Relaxed);
        return null_mut();
    }
    PEAK.fetch_max(held, Relaxed);
    let pointer = from_system();
    if pointer.is_null() {
        HELD.fetch_sub(size, Relaxed);
    }
    pointer
}

/// The most bytes that were held during `work` beyond those that were held before it, by all threads.
pub fn peak_of(work: impl FnOnce()) -> usize {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    PEAK.load(Relaxed).saturating_sub(before)
}

//! Memory for tensors: written by one owner, then frozen and shared.
//!
//! Where the bytes lie is behind [`Memory`]: the heap here, a slot of shared memory for workers. Nodes never make a
//! `Vec` of their own for a tensor; they ask an [`Alloc`], so that the same node writes into either.

use std::fmt;
use std::sync::{Arc, Mutex};

/// A block of bytes that is writable while it has one owner.
pub trait Memory: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes, for the one owner.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Where other processes find the block, if it lies in memory that they can map.
    fn shared(&self) -> Option<SharedAt> {
        None
    }
}

/// A place in memory that several processes map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct SharedAt {
    /// Which arena.
    pub arena: u32,
    /// Bytes from its start.
    pub offset: u64,
}

/// Gives out memory for tensors.
pub trait Alloc: Send + Sync {
    /// A block of at least `len` bytes, aligned to 8, with unspecified content.
    fn alloc(&self, len: usize) -> BufferMut;
}

/// A block that is being written.
pub struct BufferMut(Box<dyn Memory>);

impl BufferMut {
    /// Wraps a block.
    pub fn new(memory: Box<dyn Memory>) -> Self {
        BufferMut(memory)
    }

    /// The bytes to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }

    /// Where other processes find it, if it lies in memory that they can map.
    pub fn shared(&self) -> Option<SharedAt> {
        self.0.shared()
    }

    /// Ends writing: from here on the block is immutable and may be shared.
    pub fn freeze(self) -> Buffer {
        Buffer(Arc::from(self.0))
    }
}

/// A block that will not change any more. Clones share it.
#[derive(Clone)]
pub struct Buffer(Arc<dyn Memory>);

impl Buffer {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Where other processes find it, if it lies in memory that they can map.
    pub fn shared(&self) -> Option<SharedAt> {
        self.0.shared()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes().len())
    }
}

/// Heap memory that is kept for reuse: fresh pages are costly, and a pipeline asks for the same few sizes again and
/// again. Blocks return to the pool when their last owner drops them.
#[derive(Clone, Default)]
pub struct HeapPool {
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    blocks: Vec<Box<[u64]>>,
    bytes: usize,
}

/// Bytes that a pool keeps at most; blocks beyond it go back to the system.
const SHELF_BYTES: usize = 64 << 20;

impl HeapPool {
    /// A pool of its own.
    pub fn new() -> Self {
        HeapPool::default()
    }

    fn take(&self, words: usize) -> Option<Box<[u64]>> {
        let mut shelf = self.shelf.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // The newest block that fits without wasting half of it: sizes repeat, so the search is short.
        let found = shelf.blocks.iter().rposition(|block| block.len() >= words && block.len() / 2 <= words)?;
        let block = shelf.blocks.swap_remove(found);
        shelf.bytes -= block.len() * 8;
        Some(block)
    }
}

impl Alloc for HeapPool {
    fn alloc(&self, len: usize) -> BufferMut {
        let words = len.div_ceil(8);
        let block = self.take(words).unwrap_or_else(|| vec![0u64; words].into_boxed_slice());
        BufferMut::new(Box::new(HeapBlock { block, shelf: self.shelf.clone() }))
    }
}

struct HeapBlock {
    block: Box<[u64]>,
    shelf: Arc<Mutex<Shelf>>,
}

impl Memory for HeapBlock {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.block)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.block)
    }
}

impl Drop for HeapBlock {
    fn drop(&mut self) {
        let block = std::mem::take(&mut self.block);
        let mut shelf = self.shelf.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if shelf.bytes + block.len() * 8 <= SHELF_BYTES {
            shelf.bytes += block.len() * 8;
            shelf.blocks.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_block_is_given_out_again() {
        let pool = HeapPool::new();
        let mut first = pool.alloc(1000);
        first.bytes_mut()[0] = 7;
        let address = first.bytes_mut().as_ptr();
        drop(first.freeze());
        assert_eq!(pool.alloc(900).bytes_mut().as_ptr(), address);
    }

    #[test]
    fn a_shared_block_is_not_given_out() {
        let pool = HeapPool::new();
        let kept = pool.alloc(1000).freeze();
        assert_ne!(pool.alloc(1000).bytes_mut().as_ptr(), kept.bytes().as_ptr());
    }
}

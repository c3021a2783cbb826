//! Memory that several processes map: where batches lie, so that they reach a worker without a copy.
//!
//! An arena is a file without a name in memory, mapped once with a large reserve of addresses, and grown as needed. The
//! coordinator alone allocates in it ([`Arena`]); workers get its descriptor and look at the places that jobs name
//! ([`MappedArena`]). There are no locks and no counters in the shared memory. Who may write where is a matter of
//! owners: a slot is written by the one that has it as a [`BufferMut`] and is immutable from then on, and the memory
//! for outputs belongs to one job in one worker until its result is told.
//!
//! Promises: what a frame says about places is checked in full, so a hostile frame is an error and never a fault; the
//! file never shrinks, and all of it is backed by memory, so no access ends in a signal.
//!
//! This is the only file of the engine with `unsafe` in it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::extents::Extents;
use super::frame::{Access, ArenaFrame, TensorAt};
use crate::data::{Alloc, BufferMut, HeapPool, Memory, SharedAt, Tensor};

/// What slots are aligned to: pages, which devices lock into memory as a whole.
const PAGE: u64 = 4096;
/// Bytes by which an arena grows.
const STEP: u64 = 2 << 20;
/// Fewer addresses than this are of no use.
const LEAST_RESERVE: u64 = 1 << 20;

/// Shared memory to allocate in. Clones are the same arena.
#[derive(Clone)]
pub struct Arena(Arc<Inner>);

struct Inner {
    id: u32,
    fd: OwnedFd,
    mapping: Mapping,
    extents: Mutex<Extents>,
    heap: HeapPool,
}

impl Arena {
    /// An empty arena with addresses for `wanted` bytes, or for as many as the system grants.
    ///
    /// # Errors
    /// If there is no descriptor left, or not even a mebibyte of addresses.
    pub fn create(id: u32, wanted: u64) -> io::Result<Arena> {
        let fd = rustix::fs::memfd_create("flowgpu-arena", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        // It may grow, and nobody may forbid that later.
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::SEAL)?;
        let mut reserve = wanted.clamp(LEAST_RESERVE, 1 << 46).next_multiple_of(PAGE);
        let mapping = loop {
            match Mapping::new(&fd, reserve, ProtFlags::READ | ProtFlags::WRITE) {
                // A limit of addresses (`ulimit -v`): less of them will do.
                Err(error) if error.kind() == ErrorKind::OutOfMemory && reserve / 2 >= LEAST_RESERVE => {
                    reserve = (reserve / 2).next_multiple_of(PAGE);
                }
                mapped => break mapped?,
            }
        };
        let extents = Mutex::default();
        Ok(Arena(Arc::new(Inner { id, fd, mapping, extents, heap: HeapPool::new() })))
    }

    /// The number by which frames name it.
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// Bytes that it may grow to.
    pub fn reserve(&self) -> u64 {
        self.0.mapping.len as u64
    }

    /// The file, to be sent to workers.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }

    /// Bytes in slots that are given out.
    pub fn bytes_in_use(&self) -> u64 {
        self.0.extents().in_use()
    }

    /// Bytes of memory that it has taken from the system, in use or kept for reuse.
    pub fn bytes_reserved_from_system(&self) -> u64 {
        self.0.extents().end()
    }

    /// A slot of `len` bytes, aligned to pages; `None` if the reserve is used up or the system has no memory. It
    /// returns to the arena when the last owner drops it.
    pub fn try_alloc(&self, len: usize) -> Option<BufferMut> {
        let size = u64::try_from(len.max(1)).ok()?.checked_next_multiple_of(PAGE)?;
        let mut extents = self.0.extents();
        let offset = match extents.take(size) {
            Some(offset) => offset,
            None => {
                let end = self.0.grown_to(&extents, size)?;
                extents.grow(end);
                extents.take(size)?
            }
        };
        drop(extents);
        Some(BufferMut::new(Box::new(Slot { arena: self.0.clone(), offset, size, len })))
    }
}

impl Alloc for Arena {
    fn alloc(&self, len: usize) -> BufferMut {
        self.try_alloc(len).unwrap_or_else(|| self.0.heap.alloc(len))
    }
}

impl Inner {
    fn extents(&self) -> MutexGuard<'_, Extents> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the file so long that it ends with `size` free bytes, and says where it ends.
    fn grown_to(&self, extents: &Extents, size: u64) -> Option<u64> {
        let end = extents.end_for(size).filter(|end| *end <= self.mapping.len as u64)?;
        let end = end.checked_next_multiple_of(STEP)?.min(self.mapping.len as u64);
        let from = extents.end();
        loop {
            // Real memory, not a hole that is filled when it is touched: the lack of it shall be seen here.
            match rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), from, end - from) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return rustix::fs::ftruncate(&self.fd, end).ok().map(|()| end),
                outcome => return outcome.ok().map(|()| end),
            }
        }
    }
}

/// A part of an arena that belongs to one owner, or to those who share it frozen.
struct Slot {
    arena: Arc<Inner>,
    offset: u64,
    size: u64,
    len: usize,
}

impl Memory for Slot {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the file reaches to the slot's end (`extents` gives out nothing beyond it) and lies within the
        // mapping, which lives as long as `arena`. In this process the bytes are written through `bytes_mut` only, which
        // borrows the slot; workers write to a slot only while this side does not look at it.
        unsafe { slice::from_raw_parts(self.arena.mapping.at(self.offset), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and no other slot has these bytes while this one lives.
        unsafe { slice::from_raw_parts_mut(self.arena.mapping.at(self.offset), self.len) }
    }

    fn shared(&self) -> Option<SharedAt> {
        Some(SharedAt { arena: self.arena.id, offset: self.offset })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.arena.extents().put(self.offset, self.size);
    }
}

/// How a worker maps the arenas of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputMapping {
    /// So that they can be read.
    Readable,
    /// So that a device can page-lock them, which it does with writable memory only. They are not written.
    PageLockable,
}

/// Another process's arena, seen from a worker.
pub struct MappedArena {
    id: u32,
    access: Access,
    fd: OwnedFd,
    mapping: Mapping,
    /// Bytes that the file has had at least; it never has fewer.
    present: AtomicU64,
    /// Bytes that [`MappedArena::grown`] has told of.
    told: Mutex<u64>,
    /// The places of outputs that have an owner: offset and length.
    outputs: Mutex<Vec<(u64, u64)>>,
}

impl MappedArena {
    /// Maps the arena that `frame` describes; `inputs` says how, if it is one for inputs.
    ///
    /// # Errors
    /// If there are not so many addresses, or the file is not one that only grows.
    pub fn map(frame: &ArenaFrame, fd: OwnedFd, inputs: InputMapping) -> io::Result<Arc<MappedArena>> {
        let invalid = |what: &str| io::Error::new(ErrorKind::InvalidInput, format!("arena {}: {what}", frame.id));
        let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|_| invalid("its descriptor is no file in memory"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(invalid("its file is not sealed against shrinking"));
        }
        let prot = match (frame.access, inputs) {
            (Access::Read, InputMapping::Readable) => ProtFlags::READ,
            (Access::Read, InputMapping::PageLockable) | (Access::Write, _) => ProtFlags::READ | ProtFlags::WRITE,
        };
        let mapping = Mapping::new(&fd, frame.reserve, prot)
            .map_err(|error| io::Error::new(error.kind(), format!("arena {}: {error}", frame.id)))?;
        let arena = MappedArena {
            id: frame.id,
            access: frame.access,
            fd,
            mapping,
            present: AtomicU64::new(0),
            told: Mutex::new(0),
            outputs: Mutex::default(),
        };
        arena.present();
        Ok(Arc::new(arena))
    }

    /// The input that lies at `at`.
    ///
    /// # Errors
    /// If that is no place for one.
    pub fn tensor(self: &Arc<Self>, at: &TensorAt) -> Result<Tensor, String> {
        if self.access != Access::Read {
            return Err(format!("arena {} is not for inputs", self.id));
        }
        let (offset, len) = self.place(at.at, at.n_bytes()?)?;
        let view: Box<dyn Memory> = Box::new(View { arena: self.clone(), offset, len });
        Ok(Tensor::new(at.dtype, at.shape.clone(), BufferMut::new(view).freeze()))
    }

    /// The memory for outputs that lies at `at`.
    ///
    /// # Errors
    /// If that is no place for them, or another job's.
    pub fn output(self: &Arc<Self>, at: SharedAt, len: u64) -> Result<BufferMut, String> {
        if self.access != Access::Write {
            return Err(format!("arena {} is not for outputs", self.id));
        }
        let (offset, n_bytes) = self.place(at, len)?;
        let mut outputs = self.outputs();
        if outputs.iter().any(|&(other, other_len)| offset < other + other_len && other < offset + len) {
            return Err(format!("bytes {offset}..{} of arena {} are another job's", offset + len, self.id));
        }
        outputs.push((offset, len));
        drop(outputs);
        Ok(BufferMut::new(Box::new(Output { arena: self.clone(), offset, len: n_bytes })))
    }

    /// What has been added to the file since the last call, as far as tensors have made it known, for devices that lock
    /// memory.
    ///
    /// Nothing must be read or written through it: it may hold a batch that the other process is writing.
    pub fn grown(&'static self) -> Option<&'static [u8]> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let from = std::mem::replace(&mut *told, self.present.load(Ordering::Relaxed));
        let len = usize::try_from(*told - from).ok().filter(|len| *len > 0)?;
        // SAFETY: the file reaches to the end of the range and never shrinks, and the mapping is never undone, because
        // `self` lives for ever. The bytes are given to devices as addresses.
        Some(unsafe { slice::from_raw_parts(self.mapping.at(from), len) })
    }

    /// Checks a place, and gives it in the types of addresses.
    fn place(&self, at: SharedAt, len: u64) -> Result<(u64, usize), String> {
        if at.arena != self.id {
            return Err(format!("a place in arena {} sought in arena {}", at.arena, self.id));
        }
        let end = at.offset.checked_add(len);
        let fits = |present: u64| end.is_some_and(|end| end <= present);
        if !fits(self.present.load(Ordering::Relaxed)) && !fits(self.present()) {
            let present = self.present.load(Ordering::Relaxed);
            return Err(format!("{len} bytes at {} of arena {}, which has {present}", at.offset, self.id));
        }
        let len = usize::try_from(len).map_err(|_| format!("{len} bytes in arena {}", self.id))?;
        Ok((at.offset, len))
    }

    /// Asks how much of the file can be reached.
    fn present(&self) -> u64 {
        let len = rustix::fs::fstat(&self.fd).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        self.present.fetch_max(len.min(self.mapping.len as u64), Ordering::Relaxed);
        self.present.load(Ordering::Relaxed)
    }

    fn outputs(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An input in another process's arena.
struct View {
    arena: Arc<MappedArena>,
    offset: u64,
    len: usize,
}

impl Memory for View {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `place` has found the range within the file, which never shrinks, and within the mapping, which lives
        // as long as `arena`. Inputs do not change while a job names them: that is the protocol. A process that breaks it
        // changes numbers, and nothing else depends on these bytes.
        unsafe { slice::from_raw_parts(self.arena.mapping.at(self.offset), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // Inputs are frozen from the start; their pages may not even be writable.
        &mut []
    }

    fn shared(&self) -> Option<SharedAt> {
        Some(SharedAt { arena: self.arena.id, offset: self.offset })
    }
}

/// Memory for a job's outputs in another process's arena.
struct Output {
    arena: Arc<MappedArena>,
    offset: u64,
    len: usize,
}

impl Memory for Output {
    fn bytes(&self) -> &[u8] {
        // SAFETY: as in `View`; the bytes are this job's until it has told its result.
        unsafe { slice::from_raw_parts(self.arena.mapping.at(self.offset), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the mapping is writable, since the arena is one for outputs, and `outputs` has seen to it
        // that no other value of this process has these bytes.
        unsafe { slice::from_raw_parts_mut(self.arena.mapping.at(self.offset), self.len) }
    }

    fn shared(&self) -> Option<SharedAt> {
        Some(SharedAt { arena: self.arena.id, offset: self.offset })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let place = (self.offset, self.len as u64);
        let mut outputs = self.arena.outputs();
        if let Some(found) = outputs.iter().position(|other| *other == place) {
            outputs.swap_remove(found);
        }
    }
}

/// Addresses for a file, more than it has at first.
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: addresses belong to the process, not to a thread; what is done at them is each caller's matter.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: &OwnedFd, len: u64, prot: ProtFlags) -> io::Result<Mapping> {
        let len = usize::try_from(len).map_err(|_| ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at addresses that the system chooses touches no memory that is in use.
        let base =
            unsafe { rustix::mm::mmap(ptr::null_mut(), len, prot, MapFlags::SHARED | MapFlags::NORESERVE, fd, 0)? };
        Ok(Mapping { base: NonNull::new(base.cast()).ok_or(ErrorKind::OutOfMemory)?, len })
    }

    /// The address of a byte. Whether the file has it is the caller's matter.
    fn at(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset <= self.len as u64, "byte {offset} of {}", self.len);
        // Places were checked against the length, which is a `usize`.
        self.base.as_ptr().wrapping_add(offset as usize)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the whole of one mapping, and each value that looks into it owns what owns it. That it fails
        // cannot be, and would leave it mapped.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DType;

    /// The arena as a worker sees it.
    fn mapped(arena: &Arena, access: Access) -> Arc<MappedArena> {
        let frame = ArenaFrame { id: arena.id(), reserve: arena.reserve(), access };
        MappedArena::map(&frame, arena.fd().try_clone_to_owned().unwrap(), InputMapping::Readable).unwrap()
    }

    fn at(offset: u64, dtype: DType, shape: &[usize]) -> TensorAt {
        TensorAt { at: SharedAt { arena: 3, offset }, dtype, shape: shape.to_vec() }
    }

    #[test]
    fn a_tensor_is_seen_on_the_other_side_without_a_copy_and_slots_come_back() {
        let arena = Arena::create(3, 64 << 20).unwrap();
        let far = mapped(&arena, Access::Read);
        let values: Vec<f32> = (0..3000).map(|value| value as f32).collect();
        let tensor = Tensor::from_slice(&arena, DType::F32, vec![1000, 3], &values);
        let rows = tensor.rows(10, 5);
        let there = far.tensor(&TensorAt::of(&rows).unwrap()).unwrap();
        assert_eq!((there.shape(), there.bytes()), (&[5, 3][..], rows.bytes()));
        assert_eq!(there.shared(), rows.shared());
        // Zero-copy: what is written here later is seen there.
        let place = tensor.shared().unwrap();
        assert_eq!((place.arena, place.offset % PAGE), (3, 0));
        assert_eq!(arena.bytes_in_use(), 12288);
        drop((tensor, there));
        assert_eq!(arena.bytes_in_use(), 12288, "rows share the slot");
        drop(rows);
        assert_eq!(arena.bytes_in_use(), 0);
        let mut again = arena.try_alloc(4).unwrap();
        again.bytes_mut().copy_from_slice(&7f32.to_ne_bytes());
        let seen = far.tensor(&at(0, DType::F32, &[1])).unwrap();
        assert_eq!(*seen.view().to_f32(), [7.0]);
    }

    #[test]
    fn a_worker_sees_memory_that_came_after_it_had_mapped_the_arena() {
        let arena = Arena::create(3, 64 << 20).unwrap();
        let far: &'static Arc<MappedArena> = Box::leak(Box::new(mapped(&arena, Access::Read)));
        assert!(far.grown().is_none());
        assert!(far.tensor(&at(0, DType::U8, &[1])).is_err(), "there is nothing yet");
        let slots: Vec<_> =
            (1..=10u8).map(|fill| Tensor::from_slice(&arena, DType::U8, vec![1 << 20], &vec![fill; 1 << 20])).collect();
        for (slot, fill) in slots.iter().zip(1u8..) {
            let there = far.tensor(&TensorAt::of(slot).unwrap()).unwrap();
            assert!(there.bytes().iter().all(|byte| *byte == fill));
        }
        assert_eq!(far.grown().map(<[u8]>::len), Some(10 << 20));
        assert!(far.grown().is_none());
    }

    #[test]
    fn outputs_are_written_there_and_read_here() {
        let arena = Arena::create(3, 8 << 20).unwrap();
        let far = mapped(&arena, Access::Write);
        let slot = arena.try_alloc(100).unwrap().freeze();
        let place = slot.shared().unwrap();
        let mut output = far.output(place, 100).unwrap();
        output.bytes_mut()[64..72].copy_from_slice(bytemuck::cast_slice(&[1.5f32, 2.5]));
        let written =
            TensorAt { at: SharedAt { offset: place.offset + 64, ..place }, dtype: DType::F32, shape: vec![2, 1] };
        assert_eq!(*written.within(&slot).unwrap().view().to_f32(), [1.5, 2.5]);
        for outside in [
            at(place.offset + 96, DType::F32, &[2]),
            at(1 << 40, DType::F32, &[1]),
            at(64, DType::F32, &[usize::MAX, 2]),
        ] {
            assert!(outside.within(&slot).is_err(), "{outside:?}");
        }
        // Two jobs never write to the same bytes.
        assert!(far.output(SharedAt { offset: place.offset + 99, ..place }, 1).err().unwrap().contains("another job"));
        drop(output);
        assert!(far.output(place, 100).is_ok());
    }

    #[test]
    fn a_hostile_place_is_an_error() {
        let arena = Arena::create(3, 4 << 20).unwrap();
        let slot = arena.try_alloc(4096).unwrap();
        let far = mapped(&arena, Access::Read);
        let end = arena.bytes_reserved_from_system();
        let places = [
            at(end, DType::U8, &[1]),
            at(end - 4, DType::F32, &[2]),
            at(arena.reserve(), DType::U8, &[1]),
            at(u64::MAX, DType::U8, &[1]),
            at(u64::MAX - 3, DType::F32, &[1]),
            at(0, DType::U8, &[usize::MAX]),
            at(0, DType::I64, &[usize::MAX, 2]),
            at(0, DType::U8, &[0, usize::MAX, usize::MAX]),
            at(0, DType::U8, &[1 << 33, 1 << 33]),
            at(2, DType::F32, &[1]),
            at(0, DType::U8, &[]),
            TensorAt { at: SharedAt { arena: 4, offset: 0 }, ..at(0, DType::U8, &[1]) },
        ];
        for place in places {
            assert!(far.tensor(&place).is_err(), "{place:?}");
        }
        assert!(far.tensor(&at(end, DType::F32, &[0, 7])).unwrap().bytes().is_empty());
        assert_eq!(far.tensor(&at(end - 8, DType::F32, &[2])).unwrap().n_rows(), 2);
        assert!(far.output(slot.freeze().shared().unwrap(), 1).is_err(), "inputs are not written");
        let far = mapped(&arena, Access::Write);
        assert!(far.tensor(&at(0, DType::U8, &[1])).is_err(), "outputs are no inputs");
        for (offset, len) in [(0, end + 1), (end, 1), (u64::MAX, 1), (1, u64::MAX)] {
            assert!(far.output(SharedAt { arena: 3, offset }, len).is_err(), "{len} at {offset}");
        }
    }

    #[test]
    fn a_file_that_could_shrink_or_is_none_is_refused() {
        let frame = ArenaFrame { id: 3, reserve: 1 << 20, access: Access::Read };
        let map = |fd| MappedArena::map(&frame, fd, InputMapping::Readable).err().unwrap().to_string();
        let unsealed = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(map(unsealed).contains("arena 3: its file is not sealed"));
        let (pipe, _other) = rustix::pipe::pipe().unwrap();
        assert!(map(pipe).contains("no file in memory"));
        let arena = Arena::create(3, 1 << 20).unwrap();
        let frame = ArenaFrame { reserve: u64::MAX, ..frame };
        let fd = arena.fd().try_clone_to_owned().unwrap();
        assert!(MappedArena::map(&frame, fd, InputMapping::PageLockable).is_err());
    }

    #[test]
    fn a_full_arena_gives_nothing_and_its_allocator_gives_heap_memory() {
        let arena = Arena::create(3, 1).unwrap();
        assert_eq!(arena.reserve(), LEAST_RESERVE);
        let kept = arena.try_alloc(LEAST_RESERVE as usize).unwrap();
        assert!(arena.try_alloc(1).is_none());
        assert!(arena.try_alloc(usize::MAX).is_none());
        let heap = arena.alloc(1).freeze();
        assert_eq!(heap.shared(), None);
        drop(kept);
        assert!(arena.alloc(1).freeze().shared().is_some());
    }

    #[test]
    fn ten_thousand_batches_of_varying_sizes_keep_the_file_flat() {
        const LARGEST: u64 = 600_000;
        const AT_ONCE: usize = 8;
        let arena = Arena::create(3, 1 << 30).unwrap();
        let mut random = 1u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        let mut slots = std::collections::VecDeque::new();
        let mut early = 0;
        for n in 0..10_000 {
            if slots.len() == AT_ONCE {
                // Not always the oldest: retries hold some longer.
                slots.swap_remove_back((next() as usize) % AT_ONCE);
            }
            slots.push_back(arena.try_alloc((next() % LARGEST) as usize + 1).unwrap());
            if n == 1000 {
                early = arena.bytes_reserved_from_system();
            }
        }
        let most = LARGEST * AT_ONCE as u64;
        let late = arena.bytes_reserved_from_system();
        assert!(late <= early + STEP && late <= most * 3 / 2, "{early} bytes, then {late}; at most {most} were in use");
        slots.clear();
        assert_eq!(arena.bytes_in_use(), 0);
    }

    #[test]
    fn the_last_owner_undoes_the_mapping() {
        let (buffer, fd) = {
            let arena = Arena::create(3, 1 << 20).unwrap();
            (Tensor::from_slice(&arena, DType::U8, vec![4], &[1u8, 2, 3, 4]), arena.fd().try_clone_to_owned().unwrap())
        };
        assert_eq!(buffer.bytes(), [1, 2, 3, 4], "a buffer keeps its arena");
        drop(buffer);
        assert_eq!(rustix::fs::fstat(&fd).unwrap().st_size, 1 << 20, "the file outlives the mapping");
    }
}

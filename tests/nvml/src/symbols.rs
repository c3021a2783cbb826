//! The symbols, as C calls them.
//!
//! Their names, structures and codes are those of the interface's version 12. A caller passes pointers to places of the
//! size that the interface asks for; null pointers are refused.

use std::ffi::{CStr, c_char, c_uint, c_ulonglong, c_void};
use std::ptr;

use crate::description::{Description, Gpu, User};
use crate::machine::{self, Code, Handle, by_uuid, machine};

type Device = *mut c_void;

/// What `nvmlDeviceGetMemoryInfo_v2` fills in.
#[derive(Debug)]
#[repr(C)]
pub struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// What the lists of processes consist of.
#[derive(Debug)]
#[repr(C)]
pub struct Process {
    pid: c_uint,
    bytes: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// What `nvmlDeviceGetUtilizationRates` fills in.
#[derive(Debug)]
#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// Places for instances that every GPU has, whether they are taken or not.
const PLACES_FOR_INSTANCES: c_uint = 7;

/// Initialises the library.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_uint {
    machine::init() as c_uint
}

/// The same; the flags are passed over.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> c_uint {
    machine::init() as c_uint
}

/// Ends its use.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_uint {
    machine::shutdown() as c_uint
}

/// The driver's version.
///
/// # Safety
/// `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(text: *mut c_char, length: c_uint) -> c_uint {
    let driver = machine(|machine| Ok(machine.driver.clone()));
    // SAFETY: the caller's promise.
    code(driver.and_then(|driver| unsafe { write_text(&driver, text, length) }))
}

/// How many GPUs there are.
///
/// # Safety
/// `count` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_uint {
    let n_gpus = machine(|machine| Ok(machine.gpus.len() as c_uint));
    // SAFETY: the caller's promise.
    code(n_gpus.and_then(|n_gpus| unsafe { write(n_gpus, count) }))
}

/// The handle of a GPU.
///
/// # Safety
/// `device` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut Device) -> c_uint {
    let handle = machine(|machine| {
        let handle = Handle::of_gpu(index as usize);
        let gpu = handle.find(machine)?;
        fails(gpu, "nvmlDeviceGetHandleByIndex_v2")?;
        Ok(handle)
    });
    // SAFETY: the caller's promise.
    code(handle.and_then(|handle| unsafe { write(to_device(handle), device) }))
}

/// The handle of the GPU or instance with a UUID.
///
/// # Safety
/// `uuid` is null or ends with a zero; `device` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut Device) -> c_uint {
    if uuid.is_null() {
        return Code::InvalidArgument as c_uint;
    }
    // SAFETY: not null, and it ends with a zero by the caller's promise.
    let uuid = unsafe { CStr::from_ptr(uuid) };
    let handle = uuid.to_str().map_err(|_| Code::NotFound).and_then(|uuid| machine(|machine| by_uuid(machine, uuid)));
    // SAFETY: the caller's promise.
    code(handle.and_then(|handle| unsafe { write(to_device(handle), device) }))
}

/// A device's UUID.
///
/// # Safety
/// `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: Device, text: *mut c_char, length: c_uint) -> c_uint {
    let uuid = asked(device, "nvmlDeviceGetUUID", |gpu| Ok(gpu.uuid.clone()));
    // SAFETY: the caller's promise.
    code(uuid.and_then(|uuid| unsafe { write_text(&uuid, text, length) }))
}

/// A device's name.
///
/// # Safety
/// `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: Device, text: *mut c_char, length: c_uint) -> c_uint {
    let name = asked(device, "nvmlDeviceGetName", |gpu| Ok(gpu.name.clone()));
    // SAFETY: the caller's promise.
    code(name.and_then(|name| unsafe { write_text(&name, text, length) }))
}

/// A device's memory.
///
/// # Safety
/// `memory` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, memory: *mut Memory) -> c_uint {
    let found = asked(device, "nvmlDeviceGetMemoryInfo_v2", |gpu| {
        let version = (size_of::<Memory>() | 2 << 24) as c_uint;
        Ok(Memory { version, total: gpu.memory, reserved: 0, free: gpu.free(), used: gpu.memory - gpu.free() })
    });
    // SAFETY: the caller's promise.
    code(found.and_then(|found| unsafe { write(found, memory) }))
}

/// The processes that compute on a device.
///
/// # Safety
/// `count` is null or can be read and written; `processes` is null or has room for so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: Device,
    count: *mut c_uint,
    processes: *mut Process,
) -> c_uint {
    let users = users(device, "nvmlDeviceGetComputeRunningProcesses_v3", |user| !user.graphics);
    // SAFETY: the caller's promise.
    code(users.and_then(|users| unsafe { write_processes(&users, count, processes) }))
}

/// The processes that draw on a device.
///
/// # Safety
/// As for those that compute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: Device,
    count: *mut c_uint,
    processes: *mut Process,
) -> c_uint {
    let users = users(device, "nvmlDeviceGetGraphicsRunningProcesses_v3", |user| user.graphics);
    // SAFETY: the caller's promise.
    code(users.and_then(|users| unsafe { write_processes(&users, count, processes) }))
}

/// How busy a GPU is. Instances do not tell.
///
/// # Safety
/// `utilization` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: Device, utilization: *mut Utilization) -> c_uint {
    let found = asked(device, "nvmlDeviceGetUtilizationRates", |gpu| match to_handle(device).is_instance() {
        true => Err(Code::NotSupported),
        false => Ok(Utilization { gpu: gpu.utilization, memory: 0 }),
    });
    // SAFETY: the caller's promise.
    code(found.and_then(|found| unsafe { write(found, utilization) }))
}

/// Whether a GPU is in MIG mode, now and after the next reset.
///
/// # Safety
/// `current` and `pending` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(device: Device, current: *mut c_uint, pending: *mut c_uint) -> c_uint {
    let mode = asked(device, "nvmlDeviceGetMigMode", |gpu| Ok(c_uint::from(gpu.mig.is_some())));
    // SAFETY: the caller's promise.
    code(mode.and_then(|mode| unsafe { write(mode, current).and_then(|()| write(mode, pending)) }))
}

/// How many places for instances a GPU has.
///
/// # Safety
/// `count` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: Device, count: *mut c_uint) -> c_uint {
    let found = asked(device, "nvmlDeviceGetMaxMigDeviceCount", |_| Ok(PLACES_FOR_INSTANCES));
    // SAFETY: the caller's promise.
    code(found.and_then(|found| unsafe { write(found, count) }))
}

/// The handle of an instance; the places behind the last one are empty.
///
/// # Safety
/// `instance` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: Device,
    index: c_uint,
    instance: *mut Device,
) -> c_uint {
    let handle = asked(device, "nvmlDeviceGetMigDeviceHandleByIndex", |gpu| {
        let instances = gpu.mig.as_ref().ok_or(Code::InvalidArgument)?;
        let is_there = (index as usize) < instances.len();
        is_there.then(|| to_handle(device).instance(index as usize)).ok_or(Code::NotFound)
    });
    // SAFETY: the caller's promise.
    code(handle.and_then(|handle| unsafe { write(to_device(handle), instance) }))
}

/// Whether a handle is an instance's.
///
/// # Safety
/// `is_instance` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceIsMigDeviceHandle(device: Device, is_instance: *mut c_uint) -> c_uint {
    let found = asked(device, "nvmlDeviceIsMigDeviceHandle", |_| Ok(c_uint::from(to_handle(device).is_instance())));
    // SAFETY: the caller's promise.
    code(found.and_then(|found| unsafe { write(found, is_instance) }))
}

/// The handle of the GPU that an instance belongs to.
///
/// # Safety
/// `parent` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device: Device, parent: *mut Device) -> c_uint {
    let handle = asked(device, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", |_| Ok(to_handle(device).parent()));
    // SAFETY: the caller's promise.
    code(handle.and_then(|handle| unsafe { write(to_device(handle), parent) }))
}

fn to_handle(device: Device) -> Handle {
    Handle(device.addr())
}

fn to_device(handle: Handle) -> Device {
    ptr::without_provenance_mut(handle.0)
}

/// Asks a device, unless it is described as failing this call.
fn asked<T>(device: Device, symbol: &str, ask: impl FnOnce(&Gpu) -> Result<T, Code>) -> Result<T, Code> {
    machine(|machine: &Description| {
        let gpu = to_handle(device).find(machine)?;
        fails(gpu, symbol)?;
        ask(gpu)
    })
}

fn fails(gpu: &Gpu, symbol: &str) -> Result<(), Code> {
    if gpu.failing.iter().any(|failing| failing == symbol) { Err(Code::GpuIsLost) } else { Ok(()) }
}

fn users(device: Device, symbol: &str, is_wanted: impl Fn(&User) -> bool) -> Result<Vec<User>, Code> {
    asked(device, symbol, |gpu| Ok(gpu.users.iter().copied().filter(|user| is_wanted(user)).collect()))
}

fn code(outcome: Result<(), Code>) -> c_uint {
    outcome.err().unwrap_or(Code::Success) as c_uint
}

/// # Safety
/// `place` is null or can be written.
unsafe fn write<T>(value: T, place: *mut T) -> Result<(), Code> {
    if place.is_null() {
        return Err(Code::InvalidArgument);
    }
    // SAFETY: not null, so it can be written by the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// # Safety
/// `place` is null or has room for `length` bytes.
unsafe fn write_text(text: &str, place: *mut c_char, length: c_uint) -> Result<(), Code> {
    if place.is_null() {
        return Err(Code::InvalidArgument);
    }
    if text.len() >= length as usize {
        return Err(Code::InsufficientSize);
    }
    // SAFETY: the text and the zero behind it fit into `length` bytes, for which there is room.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), place.cast::<u8>(), text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes the processes if there is room for them, and how many there are.
///
/// # Safety
/// `count` is null or can be read and written; `place` is null or has room for so many.
unsafe fn write_processes(users: &[User], count: *mut c_uint, place: *mut Process) -> Result<(), Code> {
    const UNKNOWN: c_ulonglong = c_ulonglong::MAX;
    const NONE: c_uint = c_uint::MAX;
    if count.is_null() {
        return Err(Code::InvalidArgument);
    }
    // SAFETY: not null, so it can be read by the caller's promise.
    let room = unsafe { count.read() } as usize;
    // SAFETY: as above.
    unsafe { count.write(users.len() as c_uint) };
    if users.is_empty() {
        return Ok(());
    }
    if place.is_null() || room < users.len() {
        return Err(Code::InsufficientSize);
    }
    for (at, user) in users.iter().enumerate() {
        let bytes = user.bytes.unwrap_or(UNKNOWN);
        let process = Process { pid: user.pid, bytes, gpu_instance: NONE, compute_instance: NONE };
        // SAFETY: there is room for all of them.
        unsafe { place.add(at).write(process) };
    }
    Ok(())
}

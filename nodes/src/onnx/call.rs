//! A session called by several threads at once.
//!
//! `ort` lends a session to one caller at a time, since with some providers more than one is known to end badly, and a session a
//! thread is a copy of the weights a thread. On the processor ONNX Runtime says that calls may overlap.

use std::ffi::{CString, c_char};
use std::ptr::{self, NonNull};

use ort::AsPointer;
use ort::session::Session;
use ort::value::{DynValue, Value, ValueTypeMarker};

/// Computes `outputs` of the one `input` on the calling thread. With a session on a GPU, one caller at a time.
pub(super) fn call<T: ValueTypeMarker + ?Sized>(
    session: &Session,
    input: (&CString, &Value<T>),
    outputs: &[CString],
) -> ort::Result<Vec<DynValue>> {
    let inner = session.inner();
    let input_names = [input.0.as_ptr()];
    let inputs = [input.1.ptr()];
    let output_names: Vec<*const c_char> = outputs.iter().map(|name| name.as_ptr()).collect();
    let mut values = vec![ptr::null_mut(); outputs.len()];
    // SAFETY: the session, the input and the names live until the call is over, and all lengths are those of what is pointed
    // at; null options are the default ones, and null outputs are allocated by the session. `Run` is const, and its
    // implementation says that several threads may be in it at once
    // (onnxruntime/core/session/inference_session.h: "Multiple threads are allowed to run this function; hence its thread-safe").
    let status = unsafe {
        (ort::api().Run)(
            inner.ptr().cast_mut(),
            ptr::null(),
            input_names.as_ptr(),
            inputs.as_ptr(),
            inputs.len(),
            output_names.as_ptr(),
            output_names.len(),
            values.as_mut_ptr(),
        )
    };
    let allocator = Some(session.allocator());
    // SAFETY: each value is one that the call just gave, owned by nobody else, from the session's allocator. It is wrapped
    // before the status is looked at, so that none is lost where only some are there.
    let values =
        values.into_iter().filter_map(|value| Some(unsafe { Value::from_ptr(NonNull::new(value)?, allocator) }));
    let values: Vec<_> = values.collect();
    // SAFETY: the status is the call's own, and is read once.
    unsafe { ort::Error::result_from_status(status) }?;
    Ok(values)
}

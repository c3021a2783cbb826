//! `flowgpu worker`: the process that `flowgpu run` starts for a device.
//!
//! Its standard input is a socket to the one that started it. It lives as long as that one does and no longer: the
//! kernel kills it when its parent dies, and it leaves when the socket ends. Signals from a terminal are for the parent,
//! which lets its workers finish; `docs/worker-protocol.md` has the rest.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::worker::server::{ServeError, serve};
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, RecvFlags, SocketType, sockopt};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::{Failure, exit, reason};
use crate::{BUILD, Context};

/// Computes what `flowgpu run` sends.
#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    /// The kind of device to compute on
    #[arg(long, value_name = "KIND", default_value = "cpu")]
    device: String,
}

impl Worker {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let system = |error: io::Error| Failure::fault(format!("the worker process cannot start: {}", reason(&error)));
        if !is_link().map_err(system)? {
            return Err(Failure::usage("`flowgpu worker` is started by `flowgpu run`, not by hand"));
        }
        ignore_signals().map_err(system)?;
        let socket = take_link().map_err(system)?;
        // From here on the kernel kills this process when the thread that started it ends. If that was before, the other
        // end of the socket is closed already.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| system(error.into()))?;
        if has_ended(&socket) {
            return Ok(exit::DONE);
        }
        match serve(socket, cx.registry, &self.device, BUILD) {
            Ok(()) => Ok(exit::DONE),
            // The one that started this process has been told, and tells it to people.
            Err(ServeError::Refused(_)) => Ok(exit::FAULT),
            Err(error) => Err(Failure::fault(format!("worker process: {error}"))),
        }
    }
}

/// Whether standard input is what `flowgpu run` makes it.
fn is_link() -> io::Result<bool> {
    let stdin = io::stdin();
    match (sockopt::socket_domain(&stdin), sockopt::socket_type(&stdin)) {
        (Ok(domain), Ok(kind)) => Ok(domain == AddressFamily::UNIX && kind == SocketType::STREAM),
        (Err(Errno::NOTSOCK | Errno::BADF), _) => Ok(false),
        (Err(error), _) | (_, Err(error)) => Err(error.into()),
    }
}

/// The socket, which no further process inherits: one that did would keep the link open beyond this process's end.
fn take_link() -> io::Result<UnixStream> {
    let stdin = io::stdin();
    rustix::io::fcntl_setfd(&stdin, FdFlags::CLOEXEC)?;
    Ok(UnixStream::from(stdin.as_fd().try_clone_to_owned()?))
}

/// Ctrl-C reaches every process of a terminal, and service managers stop all of a service's. The parent decides what to
/// do about it.
fn ignore_signals() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Nobody looks at the flag: that it is set takes the place of dying.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

fn has_ended(socket: &UnixStream) -> bool {
    let received = rustix::net::recv(socket, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(received, Ok((0, _)) | Err(Errno::CONNRESET))
}

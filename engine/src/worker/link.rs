//! Frames over a socket: a length prefix, MessagePack, and now and then a file descriptor.
//!
//! It knows of bytes, not of what frames mean. Each frame travels in one message where the socket takes it whole, and
//! small ones arrive several at a time, so that a job costs one call to the system on each side.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::frame::MAX_FRAME;

/// Bytes of the length prefix.
const PREFIX: usize = 4;
/// Bytes that are received at once.
const BUFFER: usize = 64 << 10;

/// Why a frame was not sent or not received. None but [`LinkError::Unwritable`] leaves the link in use.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Nobody reads the other end any more.
    #[error("the other side has closed the link")]
    Closed,
    /// The system refused.
    #[error("the link failed: {0}")]
    Io(#[from] io::Error),
    /// The other side went away within a frame.
    #[error("the link ended within a frame, {found} bytes into it")]
    Cut {
        /// Bytes that came, the prefix among them.
        found: usize,
    },
    /// A frame is longer than any may be.
    #[error("a frame of {0} bytes, more than the {MAX_FRAME} that one may have")]
    TooLarge(u64),
    /// A frame is not what was expected.
    #[error("a frame of {len} bytes that cannot be understood: {reason}")]
    Malformed {
        /// Its bytes.
        len: usize,
        /// What the decoder says.
        reason: String,
    },
    /// More file descriptors than one came with a frame.
    #[error("a frame with several file descriptors")]
    Descriptors,
    /// The frame cannot be put into MessagePack. Nothing was sent.
    #[error("a frame that cannot be written: {0}")]
    Unwritable(String),
}

/// Sends a frame, and `fd` with it. Frames from several threads at once get mixed up: lock the socket.
///
/// # Errors
/// See [`LinkError`].
pub fn write_frame<T: Serialize>(socket: &UnixStream, frame: &T, fd: Option<BorrowedFd<'_>>) -> Result<(), LinkError> {
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(&[0; PREFIX]);
    rmp_serde::encode::write_named(&mut bytes, frame).map_err(|error| LinkError::Unwritable(error.to_string()))?;
    let len = bytes.len() - PREFIX;
    let prefix = u32::try_from(len).ok().filter(|_| len <= MAX_FRAME).ok_or(LinkError::TooLarge(len as u64))?;
    bytes[..PREFIX].copy_from_slice(&prefix.to_le_bytes());
    let (mut sent, mut fd) = (0, fd);
    while sent < bytes.len() {
        match send(socket, &bytes[sent..], fd) {
            Ok(n_bytes) => {
                sent += n_bytes;
                // It went with the first byte.
                fd = None;
            }
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(LinkError::Closed),
            Err(error) => return Err(LinkError::Io(error.into())),
        }
    }
    Ok(())
}

fn send(socket: &UnixStream, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = fd.as_slice();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    // A reader that has gone is an error here and not a signal, whatever the process does with that.
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

/// Receives frames.
#[derive(Debug)]
pub struct FrameReader {
    socket: UnixStream,
    buffer: Vec<u8>,
    /// What of the buffer was received and not yet read.
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    passed: u64,
    /// Descriptors, each with the place in the stream that it came with.
    fds: VecDeque<(u64, OwnedFd)>,
}

impl FrameReader {
    /// Reads what comes out of `socket`.
    pub fn new(socket: UnixStream) -> Self {
        FrameReader { socket, buffer: vec![0; BUFFER], start: 0, end: 0, passed: 0, fds: VecDeque::new() }
    }

    /// Waits for a frame, and gives it with the descriptor that came with it. `None`: the other side has closed the
    /// link, or is dead.
    ///
    /// # Errors
    /// See [`LinkError`]; nothing can be read after one.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Option<(T, Option<OwnedFd>)>, LinkError> {
        if !self.fill(PREFIX)? {
            return Ok(None);
        }
        let prefix = self.buffer[self.start..].first_chunk::<PREFIX>().copied().unwrap_or_default();
        let len = u32::from_le_bytes(prefix);
        if len as usize > MAX_FRAME {
            return Err(LinkError::TooLarge(u64::from(len)));
        }
        let whole = PREFIX + len as usize;
        self.fill(whole)?;
        let frame = decode(&self.buffer[self.start + PREFIX..self.start + whole])?;
        self.start += whole;
        self.passed += whole as u64;
        Ok(Some((frame, self.take_fd()?)))
    }

    /// Receives until there are `wanted` bytes; `false` if the stream has ended before the first of them.
    fn fill(&mut self, wanted: usize) -> Result<bool, LinkError> {
        while self.end - self.start < wanted {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            match (self.receive()?, self.end) {
                (0, 0) => return Ok(false),
                (0, found) => return Err(LinkError::Cut { found }),
                (n_bytes, _) => self.end += n_bytes,
            }
        }
        Ok(true)
    }

    fn receive(&mut self) -> Result<usize, LinkError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut self.buffer[self.end..])];
        let received = loop {
            match rustix::net::recvmsg(&self.socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                // The other side died with frames of ours unread.
                Err(Errno::CONNRESET) => return Ok(0),
                Err(error) => return Err(LinkError::Io(error.into())),
                Ok(received) => break received,
            }
        };
        // A descriptor ends what one call receives, so it belongs to the frame that the last byte is in.
        let place = self.passed + (self.end - self.start + received.bytes) as u64;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds.map(|fd| (place, fd)));
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(LinkError::Descriptors);
        }
        Ok(received.bytes)
    }

    /// The descriptor that came within the frame that was read last.
    fn take_fd(&mut self) -> Result<Option<OwnedFd>, LinkError> {
        let ours = self.fds.iter().take_while(|(place, _)| *place <= self.passed).count();
        match ours {
            0 => Ok(None),
            1 => Ok(self.fds.pop_front().map(|(_, fd)| fd)),
            _ => Err(LinkError::Descriptors),
        }
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, LinkError> {
    let malformed = |reason: String| LinkError::Malformed { len: bytes.len(), reason };
    let mut decoder = rmp_serde::Deserializer::new(bytes);
    let frame = T::deserialize(&mut decoder).map_err(|error| malformed(error.to_string()))?;
    match decoder.get_ref().len() {
        0 => Ok(frame),
        rest => Err(malformed(format!("{rest} bytes are left over"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::thread;

    use super::*;
    use crate::worker::frame::{FailReason, FromWorker, JobFailed, ToWorker};

    fn pair() -> (UnixStream, FrameReader) {
        let (near, far) = UnixStream::pair().unwrap();
        (near, FrameReader::new(far))
    }

    fn failed(job: u64, len: usize) -> FromWorker {
        FromWorker::JobFailed(JobFailed { job, reason: FailReason::Failed("x".repeat(len)) })
    }

    /// What reading `bytes` comes to when nothing follows them.
    fn read(bytes: &[u8]) -> Result<Option<ToWorker>, LinkError> {
        let (mut near, mut reader) = pair();
        near.write_all(bytes).unwrap();
        drop(near);
        Ok(reader.read()?.map(|(frame, _)| frame))
    }

    #[test]
    fn frames_of_all_lengths_arrive_whole_and_in_order() {
        let lengths = [0, 1, 100, BUFFER - 40, BUFFER, BUFFER + 1, 3 * BUFFER, MAX_FRAME - 100, 7];
        let (near, mut reader) = pair();
        let writer = thread::spawn(move || {
            for (job, len) in lengths.into_iter().enumerate() {
                write_frame(&near, &failed(job as u64, len), None).unwrap();
            }
        });
        for (job, len) in lengths.into_iter().enumerate() {
            assert_eq!(reader.read::<FromWorker>().unwrap().unwrap().0, failed(job as u64, len));
        }
        assert!(reader.read::<FromWorker>().unwrap().is_none());
        writer.join().unwrap();
    }

    #[test]
    fn many_small_frames_are_received_at_once() {
        let (near, mut reader) = pair();
        (0..100).for_each(|job| write_frame(&near, &failed(job, 5), None).unwrap());
        assert_eq!(reader.read::<FromWorker>().unwrap().unwrap().0, failed(0, 5));
        assert!(reader.end - reader.start > 99 * 20, "the others are here already");
        (1..100).for_each(|job| assert_eq!(reader.read::<FromWorker>().unwrap().unwrap().0, failed(job, 5)));
    }

    #[test]
    fn a_descriptor_comes_with_its_frame_and_is_closed_on_exec() {
        let (near, mut reader) = pair();
        let (read_end, write_end) = rustix::pipe::pipe().unwrap();
        write_frame(&near, &ToWorker::Stop, None).unwrap();
        write_frame(&near, &failed(1, BUFFER), Some(write_end.as_fd())).unwrap();
        write_frame(&near, &ToWorker::Stop, None).unwrap();
        drop(write_end);
        assert!(reader.read::<ToWorker>().unwrap().unwrap().1.is_none());
        let (frame, fd) = reader.read::<FromWorker>().unwrap().unwrap();
        assert_eq!(frame, failed(1, BUFFER));
        let fd = fd.unwrap();
        assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        std::fs::File::from(fd).write_all(b"through").unwrap();
        let mut text = String::new();
        std::fs::File::from(read_end).read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert!(reader.read::<ToWorker>().unwrap().unwrap().1.is_none());
    }

    #[test]
    fn what_is_no_frame_is_an_error_that_says_so() {
        assert!(matches!(read(&[]), Ok(None)));
        assert!(matches!(read(&[5, 0]), Err(LinkError::Cut { found: 2 })));
        assert!(matches!(read(&[5, 0, 0, 0, 0xa4, b's']), Err(LinkError::Cut { found: 6 })));
        assert!(matches!(read(&[0, 0, 0, 0]), Err(LinkError::Malformed { len: 0, .. })));
        let huge = u32::MAX.to_le_bytes();
        assert!(matches!(read(&huge), Err(LinkError::TooLarge(len)) if len == u64::from(u32::MAX)));
        assert!(matches!(read(&(MAX_FRAME as u32 + 1).to_le_bytes()), Err(LinkError::TooLarge(_))));
        let stop = [5, 0, 0, 0, 0xa4, b's', b't', b'o', b'p'];
        assert!(matches!(read(&stop), Ok(Some(ToWorker::Stop))));
        let longer = [6, 0, 0, 0, 0xa4, b's', b't', b'o', b'p', 0xc0];
        assert!(matches!(read(&longer), Err(LinkError::Malformed { reason, .. }) if reason.contains("left over")));
        let unknown = [5, 0, 0, 0, 0xa4, b's', b't', b'e', b'p'];
        assert!(matches!(read(&unknown), Err(LinkError::Malformed { reason, .. }) if reason.contains("stop")));
        // An array that says to have four billion elements, and a depth that would exhaust the stack.
        assert!(matches!(read(&[5, 0, 0, 0, 0xdd, 255, 255, 255, 255]), Err(LinkError::Malformed { .. })));
        let deep: Vec<u8> = 100_000u32.to_le_bytes().into_iter().chain([0x91].repeat(100_000)).collect();
        assert!(matches!(read(&deep), Err(LinkError::Malformed { .. })));
    }

    #[test]
    fn a_reader_that_has_gone_is_an_error_and_one_that_left_frames_unread_is_an_end() {
        let (near, reader) = pair();
        drop(reader);
        assert!(matches!(write_frame(&near, &ToWorker::Stop, None), Err(LinkError::Closed)));
        let (near, far) = UnixStream::pair().unwrap();
        write_frame(&near, &ToWorker::Stop, None).unwrap();
        drop(far);
        assert!(FrameReader::new(near).read::<FromWorker>().unwrap().is_none());
    }

    #[test]
    fn a_frame_that_is_too_large_is_not_sent() {
        let (near, mut reader) = pair();
        assert!(matches!(write_frame(&near, &failed(0, MAX_FRAME), None), Err(LinkError::TooLarge(_))));
        write_frame(&near, &ToWorker::Stop, None).unwrap();
        assert_eq!(reader.read::<ToWorker>().unwrap().unwrap().0, ToWorker::Stop);
    }
}

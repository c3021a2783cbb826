//! What comes over the link between the coordinator and its workers, from either side.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use engine::data::{DType, SharedAt};
use engine::node::{DeviceInfo, FaultKind};
use engine::worker::Arena;
use engine::worker::frame::{
    Access, ArenaFrame, Cap, DoneFrame, FailReason, FromWorker, Hello, JobFailed, LoadFailed, MAX_FRAME, PROTOCOL,
    Ready, Refusal, Run, TensorAt, ToWorker,
};
use engine::worker::link::{FrameReader, LinkError, write_frame};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::mutate::Random;
use crate::target::{Check, Target};

pub const TARGET: Target =
    Target { name: "frames", n_cases: 20_000, max_memory: 8 << 20, seeds: &[], made, dress, prepare };

fn prepare() -> Check {
    let arena = Arena::create(2, 1 << 20).expect("an arena");
    let slot = arena.try_alloc(4096).expect("it has room").freeze();
    Box::new(move |input| {
        let within = |tensor: &TensorAt| {
            if let Ok(tensor) = tensor.within(&slot) {
                assert!(tensor.bytes().len() <= slot.bytes().len(), "{tensor:?}");
            }
        };
        read_all::<ToWorker>(input, |frame| {
            if let ToWorker::Run(run) = frame {
                run.inputs.iter().for_each(within);
            }
        });
        read_all::<FromWorker>(input, |frame| {
            if let FromWorker::Done(done) = frame {
                done.outputs.iter().for_each(within);
            }
        });
    })
}

/// Reads frames to the end of the link. One that is understood is the same when it has been sent again.
fn read_all<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(input: &[u8], mut take: impl FnMut(&T)) {
    let (mut near, far) = UnixStream::pair().expect("a socket");
    near.write_all(input).expect("the socket takes so much at once");
    drop(near);
    let mut frames = FrameReader::new(far);
    let mut n_bytes = 0;
    loop {
        match frames.read::<T>() {
            Ok(Some((frame, _))) => {
                n_bytes += 4;
                assert!(n_bytes <= input.len(), "more frames than bytes");
                take(&frame);
                let again = sent(&frame);
                let (mut near, far) = UnixStream::pair().expect("a socket");
                near.write_all(&again).expect("the socket takes it");
                let again = FrameReader::new(far).read::<T>().expect("a frame").expect("a frame");
                assert!(again.0 == frame || format!("{frame:?}").contains("NaN"), "{frame:?}");
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!matches!(error, LinkError::Io(_) | LinkError::Closed), "{error}");
                assert!(error.to_string().len() < MAX_FRAME, "a message that is longer than the frame");
                break;
            }
        }
    }
}

fn sent<T: Serialize>(frame: &T) -> Vec<u8> {
    let (near, mut far) = UnixStream::pair().expect("a socket");
    write_frame(&near, frame, None).expect("a frame");
    drop(near);
    let mut bytes = Vec::new();
    far.read_to_end(&mut bytes).expect("the frame");
    bytes
}

/// Right lengths, in most cases.
fn dress(random: &mut Random, mut input: Vec<u8>) -> Vec<u8> {
    if input.len() >= 4 && !random.one_in(4) {
        let length = (input.len() - 4) as u32;
        input[..4].copy_from_slice(&length.to_le_bytes());
    }
    input
}

fn made() -> Vec<Vec<u8>> {
    let tensor = TensorAt { at: SharedAt { arena: 2, offset: 128 }, dtype: DType::F32, shape: vec![3, 2] };
    let cap = Cap { shape: vec![vec![3, 224, 224]], rows: 17 };
    let refusal = Refusal { kind: FaultKind::Transient, message: "no memory".into(), help: Some("wait".into()) };
    let run = Run {
        job: 7,
        model: 1,
        inputs: vec![tensor.clone(), tensor.clone()],
        output: SharedAt { arena: 2, offset: 0 },
        output_len: 4096,
    };
    let done = DoneFrame { job: 7, outputs: vec![tensor], micros: 12, spans: Vec::new(), cap: Some(cap) };
    let device =
        DeviceInfo { kind: "cpu".into(), name: "a processor".into(), uuid: None, memory: Some(1 << 40), n_visible: 1 };
    let hello = Hello { protocol: PROTOCOL, build: "0.1.0".into(), pid: 17, device };
    let failed = |reason| FromWorker::JobFailed(JobFailed { job: 7, reason });
    let arena = ToWorker::Arena(ArenaFrame { id: 2, reserve: 1 << 20, access: Access::Write });
    let to = [arena, ToWorker::Run(run), ToWorker::Stop];
    let from = [
        FromWorker::Hello(hello),
        FromWorker::Refused(refusal.clone()),
        FromWorker::Ready(Ready { model: 1, depth: 2 }),
        FromWorker::LoadFailed(LoadFailed { model: 1, refusal }),
        FromWorker::Done(done),
        failed(FailReason::Rows { wanted: 3, found: 2 }),
        failed(FailReason::OutputTooLarge(u64::MAX)),
        failed(FailReason::Malformed("no such model".into())),
    ];
    let all = to.iter().map(sent).chain(from.iter().map(sent));
    let mut all: Vec<_> = all.collect();
    all.push(all.concat());
    all
}

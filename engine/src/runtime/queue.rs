//! A bounded queue between two stages: so many messages, and so many bytes.
//!
//! The end of the stream is a packet of its own: a sender that is dropped without it has died.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crossbeam_channel::{SendError, bounded};

/// A message, or the end.
pub(super) enum Packet<T> {
    /// A message and its bytes.
    Data(T, usize),
    /// There will be no more.
    End,
}

/// Nobody receives any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed;

struct Gate {
    state: Mutex<GateState>,
    room: Condvar,
    budget: usize,
}

#[derive(Default)]
struct GateState {
    bytes: usize,
    n_messages: usize,
    closed: bool,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The writing end.
pub(super) struct Sender<T> {
    packets: crossbeam_channel::Sender<Packet<T>>,
    gate: Arc<Gate>,
}

/// The reading end.
pub(super) struct Receiver<T> {
    packets: crossbeam_channel::Receiver<Packet<T>>,
    gate: Arc<Gate>,
}

/// A queue for `messages` messages of together `budget` bytes. One message is always let in, whatever its size: else
/// one that is larger than the budget would wait for ever.
pub(super) fn queue<T>(messages: usize, budget: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = bounded(messages.max(1));
    let gate = Arc::new(Gate { state: Mutex::default(), room: Condvar::new(), budget });
    (Sender { packets: sender, gate: gate.clone() }, Receiver { packets: receiver, gate })
}

impl<T> Sender<T> {
    /// Waits for room, then sends.
    pub(super) fn send(&self, message: T, bytes: usize) -> Result<(), Closed> {
        let mut state = self.gate.lock();
        while !state.closed && state.n_messages > 0 && state.bytes.saturating_add(bytes) > self.gate.budget {
            state = self.gate.room.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        if state.closed {
            return Err(Closed);
        }
        state.bytes += bytes;
        state.n_messages += 1;
        drop(state);
        self.packets.send(Packet::Data(message, bytes)).map_err(|SendError(_)| Closed)
    }

    /// Says that there will be no more.
    pub(super) fn end(&self) -> Result<(), Closed> {
        self.packets.send(Packet::End).map_err(|SendError(_)| Closed)
    }
}

impl<T> Receiver<T> {
    /// The channel, to wait for it among others. What comes out of it goes through [`Receiver::took`].
    pub(super) fn channel(&self) -> &crossbeam_channel::Receiver<Packet<T>> {
        &self.packets
    }

    /// Makes room for what was taken out.
    pub(super) fn took(&self, packet: Packet<T>) -> Option<T> {
        let Packet::Data(message, bytes) = packet else { return None };
        let mut state = self.gate.lock();
        state.bytes -= bytes;
        state.n_messages -= 1;
        drop(state);
        self.gate.room.notify_one();
        Some(message)
    }

    /// Messages that wait.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.gate.lock().closed = true;
        self.gate.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_beyond_the_budget_passes_an_empty_queue() {
        let (sender, receiver) = queue(4, 10);
        assert_eq!(sender.send("large", 1000), Ok(()));
        let packet = receiver.channel().recv().expect("sent");
        assert_eq!(receiver.took(packet), Some("large"));
    }

    #[test]
    fn bytes_hold_a_sender_back_until_they_are_taken() {
        let (sender, receiver) = queue(4, 10);
        sender.send(1, 6).expect("open");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| sender.send(2, 6));
            let first = receiver.channel().recv().expect("sent");
            assert_eq!(receiver.len(), 0, "the second waits for the bytes of the first");
            receiver.took(first);
            assert_eq!(second.join().expect("no panic"), Ok(()));
        });
    }

    #[test]
    fn a_waiting_sender_sees_the_receiver_go() {
        let (sender, receiver) = queue(4, 10);
        sender.send(1, 6).expect("open");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| sender.send(2, 6));
            drop(receiver);
            assert_eq!(second.join().expect("no panic"), Err(Closed));
        });
    }
}

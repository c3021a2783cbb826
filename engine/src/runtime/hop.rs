//! An edge by itself, so that what a message costs there can be measured. A run has no use for it.

use super::message::Message;
use super::queue::{Receiver, Sender, queue};
use crate::data::{Batch, RowPos};

/// The end of an edge that a node writes to.
pub struct HopSender(Sender<Message>);

/// The end of an edge that a node reads.
pub struct HopReceiver(Receiver<Message>);

/// An edge with room for so many messages of together `budget` bytes.
pub fn hop(messages: usize, budget: usize) -> (HopSender, HopReceiver) {
    let (sender, receiver) = queue(messages, budget);
    (HopSender(sender), HopReceiver(receiver))
}

impl HopSender {
    /// Sends rows as a node does, waiting for room; says whether there is still a reader.
    pub fn send(&self, batch: Batch, upto: RowPos) -> bool {
        let message = Message { batch: Some(batch), rejects: Vec::new(), upto };
        let bytes = message.bytes();
        self.0.send(message, bytes).is_ok()
    }
}

impl HopReceiver {
    /// Waits for rows and takes them as a node does; none when the sender has gone.
    pub fn receive(&self) -> Option<Batch> {
        let packet = self.0.channel().recv().ok()?;
        self.0.took(packet)?.batch
    }
}

//! The wish that a run end, for those who wait on a store.

use std::time::Duration;

use engine::node::Cancel;
use tokio::sync::watch;

/// How often it looks at the run's own flag.
const LOOK: Duration = Duration::from_millis(20);

/// How far a run is to end. Each is more than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// Not at all.
    GoOn,
    /// What is in flight is finished.
    Drain,
    /// Everything stops.
    Abort,
}

impl Wish {
    fn of(cancel: &Cancel) -> Self {
        match (cancel.is_aborted(), cancel.is_draining()) {
            (true, _) => Wish::Abort,
            (_, true) => Wish::Drain,
            _ => Wish::GoOn,
        }
    }
}

/// Tells `sender` what `cancel` says, until that can say no more.
pub(super) async fn tell(cancel: Cancel, sender: watch::Sender<Wish>) {
    loop {
        let now = Wish::of(&cancel);
        sender.send_if_modified(|wish| std::mem::replace(wish, now) != now);
        if now == Wish::Abort {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until at least `wish` is told.
pub(super) async fn wished(wish: Wish, mut told: watch::Receiver<Wish>) {
    if told.wait_for(|told| *told >= wish).await.is_err() {
        // Nobody will tell any more.
        std::future::pending::<()>().await;
    }
}

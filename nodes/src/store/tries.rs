//! Which requests are sent again, how often and when.
//!
//! | failure | tries | before the next |
//! |---|---|---|
//! | 429, 503 and other 5xx, no answer in time, no connection, a broken one | `attempts` | all of the bucket pause and halve |
//! | 401, 403 | 3 | a short pause of this request alone |
//! | 404 and everything else | 1 | |

use std::sync::Arc;
use std::time::Duration;

use super::bucket::Bucket;
use super::error::ErrorKind;
use super::failure::Failure;
use super::limiter::{Permit, pause_of_one};

/// Fresh credentials and permissions take a moment to be known everywhere.
const TRIES_FOR_PERMISSION: u32 = 3;
/// Pauses that are told to the user.
const LONG_PAUSE: Duration = Duration::from_secs(2);

/// The tries of one request: `permit`, send, `end`, until there is an end.
pub(super) struct Tries {
    bucket: Arc<Bucket>,
    n_failed: u32,
}

impl Tries {
    pub(super) fn new(bucket: &Arc<Bucket>) -> Self {
        Tries { bucket: bucket.clone(), n_failed: 0 }
    }

    /// Waits for leave to send.
    pub(super) async fn permit(&self) -> Permit {
        self.bucket.limiter.permit().await
    }

    /// A part of what was asked for has come: the tries count from here.
    pub(super) fn progressed(&mut self) {
        self.n_failed = 0;
    }

    /// Settles a request: how it ended, or none if it is to be sent again.
    pub(super) async fn end<T>(&mut self, permit: Permit, result: Result<T, Failure>) -> Option<Result<T, Failure>> {
        let failure = match result {
            Ok(done) => {
                permit.succeeded();
                return Some(Ok(done));
            }
            Err(failure) => failure.asked_with(self.bucket.credentials()),
        };
        self.n_failed += 1;
        let most = match failure.kind {
            ErrorKind::Throttled | ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Network => {
                if let Some(pause) = permit.overloaded(failure.retry_after) {
                    self.tell(&failure, pause);
                }
                self.bucket.attempts
            }
            ErrorKind::PermissionDenied => {
                drop(permit);
                TRIES_FOR_PERMISSION
            }
            _ => 1,
        };
        if self.n_failed >= failure.max_tries.unwrap_or(most).min(most) {
            return Some(Err(failure.tried(self.n_failed)));
        }
        if failure.kind == ErrorKind::PermissionDenied {
            tokio::time::sleep(pause_of_one(self.n_failed - 1)).await;
        }
        None
    }

    fn tell(&self, failure: &Failure, pause: Duration) {
        let (bucket, what, seconds) = (&self.bucket.name, failure.what(), pause.as_secs_f64());
        if pause < LONG_PAUSE {
            tracing::debug!(bucket, what, seconds, "requests pause");
        } else {
            tracing::warn!(bucket, what, seconds, "requests pause");
        }
    }
}

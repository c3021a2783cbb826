//! `Plan` to `Running` to `Report`: threads, queues, order, rejects, cancellation.

//! `--metrics-addr`: a run's figures for Prometheus, over HTTP, as long as the run goes on.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::graph::Graph;
use engine::runtime::{NodeStats, RunStats, Running};
use engine::worker::{WorkerState, WorkerStats};

use crate::failure::{Failure, reason};

/// A client that is slower than this is let go.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients at one time; more are let go.
const MOST_CLIENTS: usize = 16;
/// A request's head is not read beyond this.
const LONGEST_HEAD: u64 = 16 << 10;

/// A port that is taken, and not served yet.
pub(super) struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
}

/// Serves until it is dropped.
pub(super) struct Serving {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Takes the port.
    pub(super) fn bind(address: &str) -> Result<Self, Failure> {
        let bound = TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|error| Failure::Usage {
            message: format!("cannot serve metrics at `{address}`: {}", reason(&error)),
            help: Some("write `host:port`, such as `127.0.0.1:9184`; port 0 takes a free one".to_owned()),
        })?;
        Ok(Metrics { listener, address })
    }

    /// Where it listens, with the number of the port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the figures of `running`.
    pub(super) fn serve(self, running: &Running) -> Serving {
        let exposition = Arc::new(Exposition { graph: running.plan().graph.clone(), stats: running.stats() });
        let over = Arc::new(AtomicBool::new(false));
        let accept = {
            let over = over.clone();
            move || accept(&self.listener, &exposition, &over)
        };
        // A run is worth more than its figures: without a thread for them it goes on.
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(accept);
        let thread = thread.map_err(|error| tracing::warn!(%error, "no thread for metrics")).ok();
        Serving { address: self.address, over, thread }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // The thread waits for clients: this is the last one.
        let woken = TcpStream::connect_timeout(&reachable(self.address), PATIENCE);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// All addresses of a machine include its own.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn accept(listener: &TcpListener, exposition: &Arc<Exposition>, over: &AtomicBool) {
    let n_clients = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
        if over.load(Ordering::Acquire) {
            return;
        }
        let Ok(client) = client else { continue };
        if n_clients.fetch_add(1, Ordering::AcqRel) >= MOST_CLIENTS {
            n_clients.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (exposition, leaving) = (exposition.clone(), n_clients.clone());
        let answer = move || {
            if let Err(error) = answer(&client, &exposition) {
                tracing::debug!(%error, "a client of the metrics was let go");
            }
            leaving.fetch_sub(1, Ordering::AcqRel);
        };
        if thread::Builder::new().name("metrics client".to_owned()).spawn(answer).is_err() {
            n_clients.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// One request, one answer.
fn answer(client: &TcpStream, exposition: &Exposition) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(client.take(LONGEST_HEAD));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    // The rest of the head is read, since closing a socket with unread bytes breaks the connection before the answer.
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    let mut words = request.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", exposition.text()),
        ("GET" | "HEAD", _) => ("404 Not Found", "the figures are at /metrics\n".to_owned()),
        ("", _) => return Ok(()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let media_type =
        if status == "200 OK" { "text/plain; version=0.0.4; charset=utf-8" } else { "text/plain; charset=utf-8" };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    let mut client = client;
    client.write_all(head.as_bytes())?;
    if method != "HEAD" {
        client.write_all(body.as_bytes())?;
    }
    client.flush()
}

/// The figures in Prometheus' text format.
struct Exposition {
    graph: Arc<Graph>,
    stats: Arc<RunStats>,
}

/// A metric of each node.
struct Metric {
    name: &'static str,
    ty: &'static str,
    help: &'static str,
    value: fn(&NodeStats, Duration) -> f64,
}

const METRICS: &[Metric] = &[
    Metric {
        name: "flowgpu_rows_total",
        ty: "counter",
        help: "Rows that the node gave out.",
        value: |node, _| count(&node.rows_out),
    },
    Metric {
        name: "flowgpu_rows_in_total",
        ty: "counter",
        help: "Rows that the node took in.",
        value: |node, _| count(&node.rows_in),
    },
    Metric {
        name: "flowgpu_rejects_total",
        ty: "counter",
        help: "Rows that the node rejected.",
        value: |node, _| count(&node.rejects),
    },
    Metric {
        name: "flowgpu_bytes_total",
        ty: "counter",
        help: "Bytes of the rows that the node gave out.",
        value: |node, _| count(&node.bytes_out),
    },
    Metric {
        name: "flowgpu_work_seconds_total",
        ty: "counter",
        help: "Work of the node, over all its threads.",
        value: |node, _| seconds(&node.work),
    },
    Metric {
        name: "flowgpu_busy_seconds_total",
        ty: "counter",
        help: "Time in which something was under way in the node.",
        value: |node, elapsed| {
            let lifetime = match node.lifetime.load(Ordering::Relaxed) {
                0 => elapsed.as_secs_f64(),
                _ => seconds(&node.lifetime),
            };
            node.shares(elapsed).busy * lifetime
        },
    },
    Metric {
        name: "flowgpu_starved_seconds_total",
        ty: "counter",
        help: "Time that the node waited for input.",
        value: |node, _| seconds(&node.starved),
    },
    Metric {
        name: "flowgpu_blocked_seconds_total",
        ty: "counter",
        help: "Time that the node waited for room behind it.",
        value: |node, _| seconds(&node.blocked),
    },
    Metric {
        name: "flowgpu_queue_batches",
        ty: "gauge",
        help: "Batches that wait before the node.",
        value: |node, _| node.queue.load(Ordering::Relaxed) as f64,
    },
];

/// A metric of each worker.
struct WorkerMetric {
    name: &'static str,
    ty: &'static str,
    help: &'static str,
    value: fn(&WorkerStats) -> f64,
}

const WORKER_METRICS: &[WorkerMetric] = &[
    WorkerMetric {
        name: "flowgpu_worker_rows_total",
        ty: "counter",
        help: "Rows that the worker computed, each model's counted.",
        value: |worker| count(&worker.rows),
    },
    WorkerMetric {
        name: "flowgpu_worker_restarts_total",
        ty: "counter",
        help: "How many times the worker was replaced.",
        value: |worker| f64::from(worker.restarts.load(Ordering::Relaxed)),
    },
];

const STATES: [(WorkerState, &str); 5] = [
    (WorkerState::Starting, "starting"),
    (WorkerState::Serving, "serving"),
    (WorkerState::Quarantine, "quarantine"),
    (WorkerState::Lost, "lost"),
    (WorkerState::Stopped, "stopped"),
];

fn count(counter: &std::sync::atomic::AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}

fn seconds(nanos: &std::sync::atomic::AtomicU64) -> f64 {
    count(nanos) / 1e9
}

impl Exposition {
    fn text(&self) -> String {
        let elapsed = self.stats.start.elapsed();
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = writeln!(text, "# HELP flowgpu_info The program and the pipeline.\n# TYPE flowgpu_info gauge");
        let _ = writeln!(
            text,
            "flowgpu_info{{pipeline=\"{}\",version=\"{}\"}} 1",
            label(&self.graph.name),
            env!("CARGO_PKG_VERSION")
        );
        let mut one = |name: &str, ty: &str, help: &str, value: f64| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {ty}\n{name} {value}");
        };
        one("flowgpu_run_seconds", "gauge", "Time since the run began.", elapsed.as_secs_f64());
        let rejects = self.stats.rejects.load(Ordering::Relaxed);
        one("flowgpu_run_rejects_total", "counter", "Rejected rows, each once.", rejects as f64);
        if let Some(total) = self.stats.total() {
            one("flowgpu_run_rows_expected", "gauge", "Rows that the sources will give.", total as f64);
        }
        for metric in METRICS {
            let _ = writeln!(text, "# HELP {} {}\n# TYPE {} {}", metric.name, metric.help, metric.name, metric.ty);
            for (node, stats) in self.graph.nodes.iter().zip(&self.stats.nodes) {
                let (name, kind) = (label(&node.name), label(node.kind.name()));
                let value = (metric.value)(stats, elapsed);
                let _ = writeln!(text, "{}{{node=\"{name}\",kind=\"{kind}\"}} {value}", metric.name);
            }
        }
        self.push_stalls(&mut text);
        self.push_workers(&mut text);
        text
    }

    fn push_stalls(&self, text: &mut String) {
        let name = "flowgpu_stalled";
        let help = "Seconds for which the node has made no progress with what it holds, if that is a stall; else 0.";
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (node_idx, node) in self.graph.nodes.iter().enumerate() {
            let seconds = self.stats.stalled(node_idx).as_secs_f64();
            let (node, kind) = (label(&node.name), label(node.kind.name()));
            let _ = writeln!(text, "{name}{{node=\"{node}\",kind=\"{kind}\"}} {seconds}");
        }
    }

    /// What each worker did, and what it does: of its states the one that it is in has a 1.
    fn push_workers(&self, text: &mut String) {
        for metric in WORKER_METRICS {
            let _ = writeln!(text, "# HELP {} {}\n# TYPE {} {}", metric.name, metric.help, metric.name, metric.ty);
            for (number, worker) in self.stats.workers.iter().enumerate() {
                let _ =
                    writeln!(text, "{}{{{}}} {}", metric.name, worker_labels(number, worker), (metric.value)(worker));
            }
        }
        let name = "flowgpu_worker_state";
        let _ = writeln!(text, "# HELP {name} 1 for the state that the worker is in.\n# TYPE {name} gauge");
        for (number, worker) in self.stats.workers.iter().enumerate() {
            for (state, word) in STATES {
                let is_in = u8::from(worker.state() == state);
                let _ = writeln!(text, "{name}{{{},state=\"{word}\"}} {is_in}", worker_labels(number, worker));
            }
        }
    }
}

fn worker_labels(number: usize, worker: &WorkerStats) -> String {
    format!("worker=\"{number}\",device=\"{}\"", label(&worker.device))
}

/// A label's value between its quotes.
fn label(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_quotes() {
        assert_eq!(label("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }

    #[test]
    fn an_address_that_means_all_is_reached_as_this_machine() {
        let check = |bound: &str, expected: &str| {
            let bound = bound.parse().expect("an address");
            assert_eq!(reachable(bound).to_string(), expected);
        };
        check("0.0.0.0:80", "127.0.0.1:80");
        check("[::]:80", "[::1]:80");
        check("192.0.2.1:80", "192.0.2.1:80");
    }
}

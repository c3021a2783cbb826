//! Outputs of lines: going back to an earlier one.

use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use engine::durable::Partial;
use engine::node::Fault;

/// Cuts an output of lines back to its first `n_bytes` bytes; about how many rows are given up with that.
pub(super) fn resume_lines(out: &mut Partial, n_bytes: u64) -> Result<u64, Fault> {
    let n_lines = count_lines(out, n_bytes);
    out.resume(n_bytes)?;
    Ok(n_lines)
}

/// Line ends behind byte `at`. Nothing but a figure depends on it, so what cannot be read is not counted.
fn count_lines(out: &Partial, mut at: u64) -> u64 {
    let Some(file) = out.file() else { return 0 };
    let (mut buffer, mut n_lines) = (vec![0; 64 << 10], 0);
    loop {
        match file.read_at(&mut buffer, at) {
            Ok(0) => return n_lines,
            Ok(n_bytes) => {
                n_lines += buffer[..n_bytes].iter().filter(|&&byte| byte == b'\n').count() as u64;
                at += n_bytes as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return n_lines,
        }
    }
}

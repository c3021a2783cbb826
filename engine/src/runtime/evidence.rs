//! Why a piece of work may hang, as far as the system tells without being asked to touch what hangs.
//!
//! A path on a dead share must not be looked at: `stat` and `statfs` would hang too. The list of mounts and the state of a
//! thread come from the kernel's own memory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::thread::Pid;

/// File systems whose data come over a network or from another process.
const REMOTE: [&str; 14] = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "lustre", "gpfs", "beegfs", "afs", "virtiofs", "fuse",
    "fuseblk",
];

/// What is known about work on `path` by `thread` that does not come back, as parts of a sentence.
pub(super) fn hint(path: Option<&Path>, thread: Pid) -> Option<String> {
    // Made absolute by its letters alone, too.
    let path = path.and_then(|path| std::path::absolute(path).ok());
    let mount = path.and_then(|path| remote_mount(&path, &fs::read("/proc/self/mountinfo").ok()?));
    let parts = [mount, in_kernel(thread)];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Which share or foreign file system a path lies on, if it lies on one: the longest mount point that it begins with.
fn remote_mount(path: &Path, mounts: &[u8]) -> Option<String> {
    let path = without_detours(path);
    let mounts = mounts.split(|&byte| byte == b'\n').filter_map(parse_mount);
    // Of several at one point the last covers the others.
    let (point, kind) =
        mounts.filter(|(point, _)| path.starts_with(point)).max_by_key(|(point, _)| point.as_os_str().len())?;
    let is_remote = REMOTE.contains(&kind.as_str()) || kind.starts_with("fuse.");
    is_remote.then(|| format!("it lies on `{}` ({kind})", point.display()))
}

/// The path without `.` and `..`, by its letters alone: whether a part is a link is not asked.
fn without_detours(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Where a line of `mountinfo` mounts what kind of file system.
fn parse_mount(line: &[u8]) -> Option<(PathBuf, String)> {
    let mut words = line.split(|&byte| byte == b' ');
    let point = unescape(words.nth(4)?);
    let kind = words.skip_while(|word| *word != b"-").nth(1)?;
    Some((PathBuf::from(OsString::from_vec(point)), String::from_utf8_lossy(kind).into_owned()))
}

/// Blanks and the like stand there as `\040`.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut at = 0;
    while at < word.len() {
        let digits = word.get(at + 1..at + 4).filter(|_| word[at] == b'\\');
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(word[at]));
        at += if value.is_some() { 4 } else { 1 };
    }
    bytes
}

/// Whether a thread of this process waits in the kernel in a way that not even a signal ends, and for what.
fn in_kernel(thread: Pid) -> Option<String> {
    let folder = PathBuf::from(format!("/proc/self/task/{}", thread.as_raw_nonzero()));
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // Some kernels do not say where, and none says it to everyone.
    let place = fs::read_to_string(folder.join("wchan")).ok();
    waits(&stat, place.as_deref().unwrap_or_default())
}

fn waits(stat: &str, place: &str) -> Option<String> {
    // The name of the thread before it may hold anything.
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    let place = Some(place.trim()).filter(|place| !place.is_empty() && *place != "0");
    let place = place.map_or_else(String::new, |place| format!(", in `{place}`"));
    (state == 'D').then(|| format!("its thread waits in the kernel (state D{place})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = br"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:27 / /mnt/nfs rw - nfs4 server:/export rw,hard
31 22 0:28 / /mnt/nfs/local rw master:3 propagate_from:2 - tmpfs none rw
32 22 0:29 / /mnt/a\040b rw - fuse.sshfs host: rw
33 22 0:30 / /mnt/twice rw - cifs //host/share rw
34 33 0:31 / /mnt/twice rw - xfs /dev/sdb rw
broken
";

    #[test]
    fn a_path_lies_on_the_longest_mount_that_it_begins_with() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(remote_mount(Path::new(path), MOUNTS).as_deref(), expected, "{path}");
        };
        check("/mnt/nfs/a.jpg", Some("it lies on `/mnt/nfs` (nfs4)"));
        check("/home/../mnt/./nfs/a.jpg", Some("it lies on `/mnt/nfs` (nfs4)"));
        check("/mnt/nfs/local/a.jpg", None);
        check("/mnt/nfs2/a.jpg", None);
        check("/mnt/a b/c", Some("it lies on `/mnt/a b` (fuse.sshfs)"));
        check("/mnt/twice/c", None);
        check("relative", None);
    }

    #[test]
    fn only_waits_that_nothing_ends_are_told() {
        let told = "its thread waits in the kernel (state D, in `rpc_wait_bit_killable`)";
        assert_eq!(waits("7 (io/3) D 1 7", "rpc_wait_bit_killable").as_deref(), Some(told));
        assert_eq!(waits("7 (a) D) D 1", "0").as_deref(), Some("its thread waits in the kernel (state D)"));
        assert_eq!(waits("7 (io D) S 1 7", "futex_wait_queue"), None);
        assert_eq!(waits("", ""), None);
    }

    #[test]
    fn this_thread_does_not_hang() {
        assert_eq!(in_kernel(rustix::thread::gettid()), None);
    }
}

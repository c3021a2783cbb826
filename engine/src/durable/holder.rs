//! Who holds a lock on a file.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// The process that holds a lock on `file`, if it is one of this machine's.
pub fn holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (device, inode) = (metadata.dev(), metadata.ino());
    let name = format!("{:02x}:{:02x}:{inode}", rustix::fs::major(device), rustix::fs::minor(device));
    // "1: FLOCK  ADVISORY  WRITE 4121 fe:00:393221 0 EOF"
    fs::read_to_string("/proc/locks").ok()?.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let place = words.iter().position(|word| *word == name)?;
        words.get(place.checked_sub(1)?)?.parse().ok().filter(|pid| *pid > 0)
    })
}

//! Members of tar archives, the same bytes whenever and by whomever they are written.

use tar::{EntryType, Header};

/// What members are padded to.
const BLOCK: usize = 512;
/// Bytes of a name that a header has room for.
const NAME_BYTES: usize = 100;

/// Appends a file.
pub(super) fn append_member(out: &mut Vec<u8>, name: &str, content: &[u8]) {
    if name.len() > NAME_BYTES {
        // GNU's way: the name is the content of a member before it, and ends with a zero.
        let long = [name.as_bytes(), &[0]].concat();
        append(out, b"././@LongLink", EntryType::GNULongName, &long);
    }
    append(out, name.as_bytes(), EntryType::Regular, content);
}

/// Appends what an archive ends with.
pub(super) fn append_end(out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * BLOCK, 0);
}

fn append(out: &mut Vec<u8>, name: &[u8], kind: EntryType, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    let name = &name[..name.len().min(NAME_BYTES)];
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_cksum();
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn members_read_back_whatever_their_names_and_sizes() {
        let long = "folder/".repeat(30) + "name.json";
        let expected = [("a.txt", vec![]), (&*long, vec![7; 512]), ("ü/b.jpg", vec![1; 513])];
        let mut out = Vec::new();
        for (name, content) in &expected {
            append_member(&mut out, name, content);
            assert_eq!(out.len() % BLOCK, 0);
        }
        append_end(&mut out);
        let mut archive = tar::Archive::new(&out[..]);
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!((entry.header().mtime().unwrap(), entry.header().uid().unwrap()), (0, 0));
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.push((String::from_utf8(entry.path_bytes().into_owned()).unwrap(), content));
        }
        assert_eq!(found, expected.map(|(name, content)| (name.to_owned(), content)));
    }
}

use std::fs;
use std::path::Path;

use super::*;
use crate::node::Item;

/// A listing of these names.
struct Names(Vec<String>, usize);

impl List for Names {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        // Never all that was asked for: nobody may rely on that.
        let end = self.0.len().min(self.1 + max.min(3));
        items.extend(self.0[self.1.min(end)..end].iter().map(|name| item(name)));
        self.1 = end;
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.1 = self.0.len().min(index as usize);
        Ok(())
    }
}

/// A listing whose items are the numbers from 0 on.
struct Numbers(u64, u64);

impl List for Numbers {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let end = self.1.min(self.0.saturating_add(max as u64));
        items.extend((self.0..end).map(|number| item(&number.to_string())));
        self.0 = self.0.max(end);
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.0 = index;
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

fn item(name: &str) -> Item {
    Item { uri: name.into(), id: None, locator: name.into(), size_hint: 0 }
}

fn slices(folder: &Path, index: u32, of: u32) -> Slices {
    let shard = Shard { index, of };
    Slices {
        shard,
        folder: folder.join("of"),
        own: Some(StateFolder::at(folder.join(shard.to_string()))),
        sources: vec![SourceKey { name: "rows".into(), checksum: 7 }],
    }
}

fn names(list: &mut dyn List) -> Result<Vec<String>, Fault> {
    let mut items = Vec::new();
    loop {
        let before = items.len();
        list.next_items(5, &mut items)?;
        if items.len() == before {
            return Ok(items.into_iter().map(|item| item.uri).collect());
        }
    }
}

fn take(folder: &Path, index: u32, of: u32, list: impl List + 'static) -> Result<Vec<String>, Fault> {
    let (mut list, _) = slices(folder, index, of).take(0, Box::new(list), &Cancel::new())?;
    names(&mut *list)
}

fn listing(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| format!("n{number:04}")).collect()
}

#[test]
fn slices_one_after_the_other_are_the_listing() {
    for total in [0, 1, 2, 7, 16, 100] {
        for of in [1, 2, 3, 16] {
            let folder = tempfile::tempdir().unwrap();
            let all = listing(0..total);
            let of_shard = |index| take(folder.path(), index, of, Names(all.clone(), 0)).unwrap();
            let parts: Vec<_> = (0..of).map(of_shard).collect();
            assert_eq!(parts.concat(), all, "{total} items in {of} shards");
            let sizes = parts.iter().map(Vec::len);
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(most - least <= 1, "{total} items in {of} shards: from {least} to {most}");

            let folder = tempfile::tempdir().unwrap();
            let of_shard = |index| take(folder.path(), index, of, Numbers(0, total.into())).unwrap();
            let parts: Vec<_> = (0..of).flat_map(of_shard).collect();
            assert_eq!(parts, (0..total).map(|number| number.to_string()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_is_added_between_two_shards_belongs_to_one_slice() {
    let folder = tempfile::tempdir().unwrap();
    let old = listing(10..30);
    let first = take(folder.path(), 0, 4, Names(old.clone(), 0)).unwrap();
    assert_eq!(first, listing(10..15));
    // Before everything, into slices that are done and that are not, and behind everything.
    let mut new = old.clone();
    for name in ["a", "n0011x", "n0014x", "n0015x", "n0026x", "z"] {
        new.push(name.to_owned());
    }
    new.sort();
    let of_shard = |index| take(folder.path(), index, 4, Names(new.clone(), 0)).unwrap();
    assert_eq!(of_shard(1), ["n0015", "n0015x", "n0016", "n0017", "n0018", "n0019"]);
    assert_eq!(of_shard(3), ["n0025", "n0026", "n0026x", "n0027", "n0028", "n0029", "z"]);
    let all: Vec<_> = (0..4).flat_map(of_shard).collect();
    assert_eq!(all, new, "with the first shard begun anew");
}

#[test]
fn a_listing_goes_on_at_any_item_of_its_slice() {
    let folder = tempfile::tempdir().unwrap();
    let all = listing(0..50);
    let shard = slices(folder.path(), 1, 3);
    let lists: [Box<dyn List>; 2] = [Box::new(Names(all.clone(), 0)), Box::new(Numbers(0, 50))];
    for (list, expected) in lists.into_iter().zip([all[16..33].to_vec(), (16..33).map(|n| n.to_string()).collect()]) {
        // Another source, so that it has boundaries of its own.
        let checksum = u32::from(list.is_fixed());
        let shard = Slices { sources: vec![SourceKey { name: "rows".into(), checksum }], own: None, ..shard.clone() };
        let (mut list, slice) = shard.take(0, list, &Cancel::new()).unwrap();
        assert_eq!((slice.start, slice.end, slice.total), (16, 33, 50));
        for index in [0, 3, 16, 17, 40, 1] {
            list.seek(index).unwrap();
            assert_eq!(names(&mut *list).unwrap(), expected[17.min(index as usize)..], "from {index} on");
        }
    }
}

#[test]
fn a_boundary_that_is_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = listing(0..20);
    take(folder.path(), 0, 4, Names(all.clone(), 0)).unwrap();
    all.retain(|name| name != "n0010");
    for index in [1, 2] {
        let fault = take(folder.path(), index, 4, Names(all.clone(), 0)).unwrap_err();
        assert_eq!(fault.message, "`n0010`, with which shard 2 of 4 begins, is gone");
    }
    assert_eq!(take(folder.path(), 3, 4, Names(all, 0)).unwrap(), listing(15..20));
}

#[test]
fn shards_on_disks_of_their_own_make_the_same_boundaries() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let all = || Box::new(Names(listing(0..20), 0));
    let (_, slice) = slices(one.path(), 1, 4).take(0, all(), &Cancel::new()).unwrap();
    let (_, same) = slices(other.path(), 1, 4).take(0, all(), &Cancel::new()).unwrap();
    assert_eq!(slice, same);
    assert_eq!(Slice::read(&one.path().join("00001-of-00004/slice.0")).unwrap(), Some(slice.clone()));
    let third = tempfile::tempdir().unwrap();
    let (_, later) = slices(third.path(), 1, 4).take(0, Box::new(Names(listing(0..24), 0)), &Cancel::new()).unwrap();
    assert_ne!(slice.set, later.set);
}

#[test]
fn many_at_once_agree_on_one_set_of_boundaries() {
    let folder = tempfile::tempdir().unwrap();
    let sets: Vec<_> = std::thread::scope(|scope| {
        let of_shard = |index| {
            let folder = folder.path();
            // Each sees a listing of its own, as if files came while they begin.
            scope.spawn(move || {
                let list = Names(listing(0..100 + index), 0);
                slices(folder, index, 16).take(0, Box::new(list), &Cancel::new()).unwrap().1.set
            })
        };
        let shards: Vec<_> = (0..16).map(of_shard).collect();
        shards.into_iter().map(|shard| shard.join().unwrap()).collect()
    });
    assert!(sets.iter().all(|set| *set == sets[0]), "{sets:?}");
    let names: Vec<_> =
        fs::read_dir(folder.path().join("of")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["rows-00000007.json"]);
}

#[test]
fn other_boundaries_than_a_shard_was_begun_with_are_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    take(folder.path(), 1, 4, Names(listing(0..20), 0)).unwrap();
    fs::remove_dir_all(folder.path().join("of")).unwrap();
    take(folder.path(), 1, 4, Names(listing(0..20), 0)).unwrap();
    fs::remove_dir_all(folder.path().join("of")).unwrap();
    let fault = take(folder.path(), 1, 4, Names(listing(0..21), 0)).unwrap_err();
    assert_eq!(fault.message, "`rows` was divided into other shards since this one was begun");
}

#[test]
fn a_file_that_does_not_say_where_shards_begin_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("of/rows-00000007.json");
    fs::create_dir(folder.path().join("of")).unwrap();
    for text in [
        "",
        "{}",
        r#"{"version":2,"total":20,"shards":4,"firsts":["a","b","c"]}"#,
        r#"{"version":1,"total":20,"shards":3,"firsts":["a","b"]}"#,
        r#"{"version":1,"total":20,"shards":4,"firsts":[]}"#,
        r#"{"version":1,"total":20,"shards":4,"firsts":["a",null,"c"]}"#,
        r#"{"version":1,"total":-1,"shards":4,"firsts":["a","b","c"]}"#,
    ] {
        fs::write(&path, text).unwrap();
        let fault = take(folder.path(), 1, 4, Names(listing(0..20), 0)).unwrap_err();
        assert!(fault.message.contains("where the shards begin, cannot be understood"), "{text}: {fault}");
    }
}

#[test]
fn one_that_is_asked_to_stop_writes_nothing_down() {
    let folder = tempfile::tempdir().unwrap();
    let cancel = Cancel::new();
    cancel.drain();
    let (mut list, slice) = slices(folder.path(), 0, 4).take(0, Box::new(Names(listing(0..20), 0)), &cancel).unwrap();
    assert_eq!((names(&mut *list).unwrap(), slice), (vec![], Slice::default()));
    assert!(!folder.path().join("of").exists());
}

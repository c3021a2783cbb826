//! Local paths through the same calls.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;

use nodes::store::{Environment, ErrorKind, Location, StoreOptions, Stores};

fn stores() -> Stores {
    Stores::with_environment(StoreOptions::default(), Environment::default())
}

fn at(folder: &Path, name: &str) -> Location {
    Location::parse(name, folder).unwrap()
}

#[test]
fn files_are_written_listed_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let stores = stores();
    let location = at(folder.path(), "sub/a b.bin");
    stores.write(&location, "0123456789".into()).unwrap();
    let (bytes, meta) = stores.read(&location, 10).unwrap();
    assert_eq!((bytes, meta.size), ("0123456789".into(), 10));
    assert_eq!(stores.stat(&location).unwrap(), meta);
    assert_eq!(stores.read_range(&location, 3..5).unwrap(), "34");
    assert_eq!(stores.read_range(&location, 5..11).unwrap_err().kind(), ErrorKind::Other);
    assert_eq!(stores.read(&location, 9).unwrap_err().kind(), ErrorKind::TooLarge);
    let mut rest = String::new();
    stores.open(&location, 7).unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "789");
    let url = Location::parse(&format!("file://{}/sub/a%20b.bin", folder.path().display()), Path::new("/")).unwrap();
    assert_eq!(stores.read(&url, 10).unwrap().1, meta);
    stores.upload(location.local_path().unwrap(), &at(folder.path(), "copy"), Path::new("/nowhere/record")).unwrap();
    assert_eq!(fs::read(folder.path().join("copy")).unwrap(), b"0123456789");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    stores.remove(&location).unwrap();
    assert_eq!(stores.stat(&location).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_folder_is_listed_in_the_order_of_a_bucket() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a/x", "a-b", "a.jpg", "a/y/z", "b", ".hidden", "a0"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    symlink("..", folder.path().join("a/up")).unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    symlink("b", folder.path().join("c")).unwrap();
    let stores = stores();
    let names = |pages: nodes::store::Pages| -> Vec<String> {
        let root = format!("{}/", folder.path().display());
        let objects = pages.flat_map(Result::unwrap);
        objects.map(|(location, _)| location.to_string().strip_prefix(&root).unwrap().to_owned()).collect()
    };
    let all = [".hidden", "a-b", "a.jpg", "a/x", "a/y/z", "a0", "b", "c"];
    let root = Location::local(folder.path());
    assert_eq!(names(stores.list(&root).unwrap()), all);
    assert_eq!(names(stores.list(&at(folder.path(), "a.")).unwrap()), ["a.jpg"]);
    assert_eq!(names(stores.list(&at(folder.path(), "none/x")).unwrap()), Vec::<String>::new());
    for (idx, after) in all.iter().enumerate() {
        assert_eq!(names(stores.list_after(&root, &at(folder.path(), after)).unwrap()), all[idx + 1..], "{after}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    for (name, kind) in [
        (".", ErrorKind::IsDirectory),
        ("dangling", ErrorKind::NotFound),
        ("none", ErrorKind::NotFound),
        ("/dev/null", ErrorKind::Unsupported),
    ] {
        let error = stores().read(&at(folder.path(), name), 10).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(stores().open(&at(folder.path(), name), 0).err().map(|error| error.kind()), Some(kind));
    }
}

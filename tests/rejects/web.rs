//! Rejects of files on a web server.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::program::Folder;
use crate::scene::{as_tar, lines, picture, rejects, run, uri};

/// Serves the tar, the pictures, and one picture only with its signature, until the test ends.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}")
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut range = None;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header)? <= 2 {
                break;
            }
            if let Some(bytes) = header.to_ascii_lowercase().strip_prefix("range: bytes=") {
                range = Some(bytes.trim().to_owned());
            }
        }
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = match path.as_str() {
            "/x.tar" => Some(as_tar()),
            "/open.png" => Some(picture(1)),
            "/closed.png?sig=S3CRET" => Some(picture(4)),
            _ => None,
        };
        let (status, body, more) = match (body, range) {
            (None, _) => ("403 Forbidden", Vec::new(), String::new()),
            (Some(body), None) => ("200 OK", body, String::new()),
            (Some(body), Some(range)) => {
                let (start, end) = range.split_once('-').unwrap_or(("0", ""));
                let start: usize = start.parse().unwrap_or(0);
                let end = end.parse().map_or(body.len(), |end: usize| (end + 1).min(body.len()));
                let more = format!("content-range: bytes {start}-{}/{}\r\n", end - 1, body.len());
                ("206 Partial Content", body[start..end].to_vec(), more)
            }
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n", body.len());
        let mut stream = reader.get_ref();
        stream.write_all(head.as_bytes())?;
        if !request.starts_with("HEAD") {
            stream.write_all(&body)?;
        }
    }
}

#[test]
fn rows_on_a_web_server_come_again_and_secrets_do_not() {
    let folder = Folder::new();
    let server = serve();
    folder.write("list.txt", &format!("{server}/open.png\n{server}/closed.png?sig=S3CRET\n"));
    assert_eq!(run(&folder, "files", "source.files, with: {manifest: list.txt}", 100).code, 3);
    let tar = format!("source.webdataset, with: {{path: \"{server}/x.tar\"}}");
    assert_eq!(run(&folder, "tar", &tar, 100).code, 3);
    let rejected = ["files", "tar"].map(|name| rejects(&folder, name).into_iter().map(|(uri, _)| uri));
    let rejected: Vec<_> = rejected.into_iter().flatten().collect();
    assert_eq!(rejected.len(), 6);
    let again = "source.rejects, with: {path: [out/files.rejects.jsonl, out/tar.rejects.jsonl]}";
    let done = run(&folder, "again", again, 1_000_000);
    assert_eq!(done.code, 3, "{done:?}");
    let uris: Vec<_> = lines(&folder, "again").iter().map(|line| uri(line)).collect();
    let expected: Vec<_> = rejected.iter().filter(|uri| !uri.contains("closed")).cloned().collect();
    assert_eq!(uris, expected);
    let refused = folder.rows("out/again.rejects.jsonl");
    assert_eq!((refused.len(), refused[0]["code"].as_str()), (1, Some("permission_denied")));
    let message = refused[0]["message"].as_str().expect("a text");
    assert!(message.contains("query strings are not in reject files"), "{message}");
    assert!(!folder.read("out/again.rejects.jsonl").contains("S3CRET"));
}

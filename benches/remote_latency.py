"""Images from a store that takes 30 ms longer for each request, against the same images in a folder, in turns.

    cargo build --release --features testing
    python3 benches/remote_latency.py [model | decode | fetch]

The store is a server in a process of its own on this machine, which knows just enough of S3: pages of a listing, objects and
ranges of them. It answers after 30 ms, any number of requests side by side, and keeps all objects in memory. What it
computes is taken from the same cores; its processor time is told beside the rates. `model` and `decode` are
bound by what their names say, as jobs are; `fetch` does nothing but read. Rates are from the start of the program to its end.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from measure import PHOTOS, median, run, say_where, scratch

DELAY = 0.03
ROUNDS = 5
WANTED = 0.95
PAGE = 1000

DECODE = "  pixels: {kind: decode.image, with: {resize: 256, crop: 224}}\n"
MODEL = "  scores: {kind: infer, with: {model: {arch: mobilenet_v2, weights: random}, batch: 8}}\n"
# Name: how many images, the nodes that they go through.
CASES = {"model": (400, DECODE + MODEL), "decode": (4000, DECODE), "fetch": (10000, "")}


class Store:
    """The objects of a folder, behind a delay."""

    def __init__(self, folder):
        self.objects = {f"photos/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
        self.keys = sorted(self.objects)

    def page(self, query):
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        prefix = query.get("prefix", [""])[0]
        keys = [key for key in self.keys if key > after and key.startswith(prefix)]
        listed = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"{key}"</ETag><Size>{len(self.objects[key])}</Size></Contents>'
            for key in keys[:PAGE]
        )
        more = f"<NextContinuationToken>{escape(keys[PAGE - 1])}</NextContinuationToken>" if len(keys) > PAGE else ""
        text = f"<ListBucketResult><IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}{listed}</ListBucketResult>"
        return 200, ["Content-Type: application/xml"], text.encode()

    def answer(self, target, headers):
        url = urlsplit(target)
        query = parse_qs(url.query)
        if "list-type" in query:
            return self.page(query)
        key = unquote(url.path).lstrip("/").partition("/")[2]
        content = self.objects.get(key)
        if content is None:
            return 404, [], b"<Error><Code>NoSuchKey</Code></Error>"
        said = [f'ETag: "{key}"', "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT", "Accept-Ranges: bytes"]
        if "range" not in headers:
            return 200, said, content
        first, last = headers["range"].removeprefix("bytes=").split("-")
        part = content[int(first) : int(last or len(content)) + 1]
        return 206, [*said, f"Content-Range: bytes {first}-{int(first) + len(part) - 1}/{len(content)}"], part

    async def serve(self, reader, writer):
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                lines = request.decode().split("\r\n")
                method, target, _ = lines[0].split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
                await asyncio.sleep(DELAY)
                status, said, body = self.answer(target, headers)
                head = "\r\n".join([f"HTTP/1.1 {status} OK", f"Content-Length: {len(body)}", *said, "", ""])
                writer.write(head.encode() + (b"" if method == "HEAD" else body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def serve(folder):
    server = await asyncio.start_server(Store(folder).serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def cpu_of(pid):
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_photos(folder, count):
    photos = [path.read_bytes() for path in sorted(PHOTOS.glob("*.jpg"))]
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:06}.jpg").write_bytes(photos[number % len(photos)])
    print(f"  {count} JPEGs, {sum(map(len, photos)) / len(photos) / 1e3:.0f} kB on average", flush=True)


def measure(name, folder):
    count, nodes = CASES[name]
    print(f"{name}: medians of {ROUNDS} rounds in turns, {DELAY * 1e3:.0f} ms added to each request")
    make_photos(folder / "photos", count)
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", folder / "photos"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(server.stdout.readline())
        out = "  out: {kind: sink.jsonl, with: {path: out.jsonl, columns: [id]}}\n"
        store = f"store: {{endpoint: 'http://127.0.0.1:{port}'}}"
        sources = {
            "local": "{path: 'photos/*.jpg'}",
            "remote": f"{{path: 's3://bucket/photos/*.jpg', {store}}}",
        }
        rates, busy, of_server = {source: [] for source in sources}, {source: [] for source in sources}, []
        for _ in range(ROUNDS):
            for source, options in sources.items():
                before = cpu_of(server.pid)
                done = run(folder, f"name: {source}\nnodes:\n  photos: {{kind: source.files, with: {options}}}\n{nodes}{out}")
                assert done.report["accounts"][0]["written"] == count
                rates[source].append(count / done.seconds)
                busy[source].append(done.cpu / count * 1e3)
                if source == "remote":
                    of_server.append((cpu_of(server.pid) - before) / count * 1e3)
        ratio = median(remote / local for remote, local in zip(rates["remote"], rates["local"]))
        for source in sources:
            print(f"  {source:<6} {median(rates[source]):8.1f} images/s, CPU {median(busy[source]):.2f} ms an image")
        by_round = " ".join(f"{remote / local:.2f}" for remote, local in zip(rates["remote"], rates["local"]))
        wanted = "" if name == "fetch" else f" ({WANTED} wanted)"
        print(f"  remote / local {ratio:.2f}{wanted}, by rounds {by_round}; the server's own CPU {median(of_server):.2f} ms an image", flush=True)
    finally:
        server.stdin.close()
        server.wait()


def main():
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(Path(sys.argv[2])))
        return
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1")
    say_where()
    for name in sys.argv[1:] or CASES:
        with scratch() as folder:
            measure(name, Path(folder))


main()

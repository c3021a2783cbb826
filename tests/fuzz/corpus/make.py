"""Writes the inputs that the fuzz targets begin with: small files of every form, by the libraries that people use.

    make.py

Run once, with pyarrow of nodes/tests/sources/requirements.txt; what it writes is kept. Inputs called `found-…` and `hangs-…` are
not from here: they broke something once.
"""

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path

import pyarrow
import pyarrow.parquet

HERE = Path(__file__).parent


def put(target: str, name: str, content: bytes) -> None:
    folder = HERE / target
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)


def tar(tar_format: int, names: list[str], extra=None) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tar_format, encoding="utf-8", errors="surrogateescape") as archive:
        for number, name in enumerate(names):
            info = tarfile.TarInfo(name)
            content = f"{number}" .encode() * (1 + number * 37 % 600)
            info.size = len(content)
            if extra:
                extra(info)
            archive.addfile(info, io.BytesIO(content))
    # Without what `tarfile` fills up with.
    return file.getvalue().rstrip(b"\0") + bytes(1536)


def header(name: bytes, size: bytes, kind: bytes = b"0", magic: bytes = b"ustar\x0000") -> bytes:
    block = bytearray(512)
    block[: len(name)] = name
    block[124 : 124 + len(size)] = size
    block[156:157] = kind
    block[257 : 257 + len(magic)] = magic
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def tars() -> None:
    names = ["d/1.jpg", "d/1.cls", "d/1.txt", "d/2.png", "d/2.cls", "d/2.txt", "3.jpg"]
    long = "/".join(["a-folder-with-a-long-name"] * 6)
    put("tar", "ustar", tar(tarfile.USTAR_FORMAT, names))
    put("tar", "gnu-long", tar(tarfile.GNU_FORMAT, [f"{long}/ä.jpg", f"{long}/ä.cls"]))
    put("tar", "pax-long", tar(tarfile.PAX_FORMAT, [f"{long}/ä.jpg", f"{long}/ä.cls"]))

    def headers(info: tarfile.TarInfo) -> None:
        info.pax_headers = {"mtime": "1.25", "comment": "x" * 300, "path": "p/" + info.name}

    put("tar", "pax-records", tar(tarfile.PAX_FORMAT, names, headers))
    plain = tar(tarfile.USTAR_FORMAT, names[:3])
    put("tar", "packed.gz", gzip.compress(plain, mtime=0))
    put("tar", "packed-twice.gz", gzip.compress(plain[:700], mtime=0) + gzip.compress(plain[700:], mtime=0))
    body = b"x".ljust(512, b"\0")
    put("tar", "negative", header(b"a.jpg", b"\xff" * 12) + body)
    put("tar", "huge", header(b"a.jpg", b"\x80" + bytes(3) + b"\x7f" + b"\xff" * 7) + body)
    put("tar", "octal-end", header(b"a.jpg", b"77777777777\0") + body)
    names = [b"../../etc/passwd.jpg", b"/etc/passwd.jpg", b"a\0b.jpg", b"\xff\xfe.jpg", b"..", b"a.jpg\n", b".jpg", b"/.jpg"]
    put("tar", "names", b"".join(header(name, b"00000000001\0") + body for name in names) + bytes(1024))
    kinds = b"".join(header(b"k.jpg", b"00000000001\0", bytes([kind])) + body for kind in b"\0001234567SLKxgXVDA")
    put("tar", "kinds", kinds + bytes(1024))


def parquets() -> None:
    n_rows = 12
    images = [bytes([number]) * (40 + number) if number != 5 else None for number in range(n_rows)]
    paths = ["photo.jpg" if number % 2 else None for number in range(n_rows)]
    struct_of = [{"bytes": content, "path": path} for content, path in zip(images, paths)]
    fields = [("bytes", pyarrow.binary()), ("path", pyarrow.string())]
    columns = {
        "image": pyarrow.array(struct_of, pyarrow.struct(fields)),
        "label": pyarrow.array([number % 3 for number in range(n_rows)], pyarrow.int32()),
        "score": pyarrow.array([number / 7 for number in range(n_rows)], pyarrow.float64()),
        "caption": pyarrow.array([f"caption {number % 2}" for number in range(n_rows)]),
        "vector": pyarrow.array([[1.5, number] for number in range(n_rows)], pyarrow.list_(pyarrow.float32(), 2)),
        "list": pyarrow.array([[0.5] * (number % 4) for number in range(n_rows)], pyarrow.list_(pyarrow.float32())),
    }
    few = {name: columns[name] for name in ("image", "label", "list")}
    for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        for version in ("1.0", "2.0"):
            file = io.BytesIO()
            table = pyarrow.table(columns if codec == "none" else few)
            pyarrow.parquet.write_table(
                table, file, compression=codec, data_page_version=version, row_group_size=7, data_page_size=64,
                use_dictionary=version == "1.0", write_statistics=codec == "none",
            )
            put("parquet", f"{codec}-{version}", file.getvalue())
    file = io.BytesIO()
    plain = pyarrow.table({
        "image": pyarrow.array([content or b"" for content in images], pyarrow.binary()),
        "flag": pyarrow.array([number % 2 == 0 for number in range(n_rows)]),
        "half": pyarrow.array([1.5] * n_rows, pyarrow.float16()),
        "fixed": pyarrow.array([b"abcd"] * n_rows, pyarrow.binary(4)),
    })
    pyarrow.parquet.write_table(plain.select(["image", "flag", "half"]), file, compression="none", store_schema=False)
    put("parquet", "binary", file.getvalue())
    file = io.BytesIO()
    uris = pyarrow.table({"uri": ["photo.jpg", "none.jpg", None], "n": pyarrow.array([1, 2, 3], pyarrow.uint64())})
    pyarrow.parquet.write_table(uris, file, compression="none")
    put("parquet", "uris", file.getvalue())
    file = io.BytesIO()
    fixed = pyarrow.table({"image": plain["fixed"]})
    pyarrow.parquet.write_table(fixed, file, compression="none")
    put("parquet", "fixed", file.getvalue())


def tables() -> None:
    put("csv", "plain", b"file,label,score,name\nphoto.jpg,1,0.5,a\nnone.jpg,-2,1e3,b\n,x,y,\n")
    put("csv", "quoted", b'\xef\xbb\xbffile,"label",score,"na""me",name\r\n"photo.jpg",1,"2\n3",",",c\r\n"a"b,1,2,3,4\r\n"open,')
    put("csv", "odd", b"name,score,label,file,file\na,b\n\n\n\xff\xfe,1,2,3,4\n" + b"x" * 5000 + b"\n1,2,3,4,5")
    put("csv", "packed.gz", gzip.compress(b"file,label,score,name\n" + b"photo.jpg,1,0.5,a\n" * 40, mtime=0))
    rows = [
        {"file": "photo.jpg", "label": 1, "score": 0.5, "name": "a", "tags": [1, {"x": None}]},
        {"file": None, "label": "3", "score": "1e400", "name": "ä\u2028\0", "tags": {}},
        {"file": "../photo.jpg", "label": 1e99, "more": True},
    ]
    lines = "\n".join(json.dumps(row, ensure_ascii=number == 1) for number, row in enumerate(rows)).encode()
    put("jsonl", "plain", lines + b"\n")
    put("jsonl", "odd", b"\xef\xbb\xbf{}\r\n\n[1]\n{\"a\":\n" + b"[" * 300 + b"\n\"text\"\n{\"file\": \"\\ud800\"}\n" + b"x" * 5000 + b"\n{\"label\": 99999999999999999999}")
    put("jsonl", "packed.gz", gzip.compress(lines * 10, mtime=0))


def tensors() -> None:
    def file(header: dict, body: bytes) -> bytes:
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + body

    two = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
        "c": {"dtype": "I64", "shape": [], "data_offsets": [32, 40]},
        "d": {"dtype": "U8", "shape": [0, 7], "data_offsets": [40, 40]},
    }
    put("safetensors", "several", file(two, bytes(range(40))))
    kinds = {"F16": 2, "F64": 8, "I32": 4, "I8": 1, "BOOL": 1, "F8_E4M3": 1, "U16": 2}
    header, at = {}, 0
    for kind, size in kinds.items():
        header[f"module.{kind}"] = {"dtype": kind, "shape": [size], "data_offsets": [at, at + size * size]}
        at += size * size
    put("safetensors", "kinds", file(header, bytes(at)))
    overlap = {name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for name in "ab"}
    put("safetensors", "overlap", file(overlap, bytes(8)))
    put("safetensors", "escapes", file({"a\\u0000\u202e/../x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)))


PIPELINES = {
    "kinds": """# every kind
name: kinds
vars: {size: 2, where: data, token: "${env:TOKEN}"}
run: {threads: 2, max_rejects: 10%, commit_every: 2s}
nodes:
  a: {kind: source.files, with: {path: ["${where}/*.jpg", "x/{a,b}.png"], exclude: "*/no/*", label_from: parent}}
  b: {kind: source.webdataset, with: {path: "s-{000..002}.tar", carry: {caption: txt, label: cls}, max_member_bytes: 1MiB}}
  c: {kind: source.synthetic, with: {rows: {count: 10}}}
  pixels: {kind: decode.image, from: [a], with: {resize: 256, crop: 224, alpha: {over: white}, interpolation: bicubic}}
  other: {kind: decode.image, from: b, with: {letterbox: {size: 64, fill: [114, 114, 114]}}}
  packed: {kind: batch, from: pixels, with: {size: "${size}", within: 50ms}}
  out: {kind: sink.jsonl, from: c, with: {path: out/c.jsonl}}
  table: {kind: sink.parquet, from: other, with: {path: "out/{part}.parquet", columns: [uri, width]}}
  arrays: {kind: sink.npy, from: packed, with: {path: out/x.npy, column: image}}
""",
    "mistakes": """name: mistakes
runs: {threads: x}
nodes:
  a: {kind: source.file, with: {pth: 1}}
  b: {kind: decode.image, from: nobody, with: {resize: -1, crop: [1, 2, 3], alpha: {over: purple}}}
  b: {kind: batch, with: {size: "${nothing}"}}
  c: {kind: infer, from: b, with: {model: none, device: "cuda:${env:TOKEN}", batch: 0}}
  d: {kind: sink.csv, from: [a, c, d], with: {path: "${env:TOKEN}"}}
""",
    "forms": """%YAML 1.2
---
name: "forms \\u0041"
x-common: &common {resize: 64, crop: 48}
vars:
  text: |
    a
    b
  folded: >-
    c
    d
nodes:
  rows: {kind: source.synthetic, with: {rows: {count: 0x10}}}
  ? pixels
  : kind: decode.image
    from: rows
    with: {<<: *common, max_pixels: 1_000}
  out:
    kind: sink.jsonl
    with: {path: 'a''b', columns: [~, null, !!str 1, 1e3, .inf]}
...
""",
    "secrets": """name: secrets
nodes:
  rows: {kind: source.files, with: {path: "https://user:${env:TOKEN}@127.0.0.1:1/x.jpg?sig=${env:TOKEN}", store: {endpoint: "http://${env:TOKEN}"}}}
  out: {kind: sink.jsonl, with: {path: "s3://bucket/out.jsonl", colour: "${env:TOKEN}", store: {endpoint: "${env:TOKEN}"}}}
""",
    "tables": """name: tables
nodes:
  a: {kind: source.csv, with: {path: a.csv, column: file, base: photos, carry: [label], types: {label: int}, delimiter: ";"}}
  b: {kind: source.jsonl, with: {path: [a.jsonl, b.jsonl.gz], carry: none, id_column: x}}
  c: {kind: source.parquet, with: {path: "a-{0..3}.parquet", column: img, carry: [label]}}
  both: {kind: transform.select, from: [a, b], with: {columns: [uri]}}
  joined: {kind: transform.join, from: [a, b]}
  top: {kind: transform.topk, from: joined, with: {k: 5, labels: imagenet1k}}
  out: {kind: sink.webdataset, from: both, with: {path: "o-{shard}.tar", rotate: {rows: 100}}}
  more: {kind: sink.safetensors, from: top, with: {path: o.safetensors}}
""",
}

if __name__ == "__main__":
    tars()
    parquets()
    tables()
    tensors()
    for name, text in PIPELINES.items():
        put("yaml", f"{name}.yaml", text.encode())

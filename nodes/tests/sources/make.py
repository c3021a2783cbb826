"""Writes tars and Parquet files by the libraries that people use, and what these read back.

    make.py FOLDER

`expected.json` has what is in each file: of tars what `webdataset` reads, of Parquet files what was put in.
"""

import io
import json
import sys
import tarfile
from pathlib import Path

import datasets
import numpy
import pyarrow
import pyarrow.parquet
import webdataset

# Images of few bytes that Pillow need not know: they are carried, not looked into.
SAMPLES = 60
LONG = "/".join(["a-folder-with-a-long-name"] * 6)


def image(number: int) -> bytes:
    noise = numpy.random.default_rng(number).bytes(2000 + 37 * number)
    return b"\xff\xd8\xff" + noise


def members(prefix: str):
    for number in range(SAMPLES):
        # Every third one has a name that needs more than a plain header, one of them with letters beyond ASCII.
        folder = (f"{LONG}/{number % 2 * 'ä'}" if number % 3 == 0 else "d").rstrip("/")
        key = f"{prefix}{folder}/{number:04}"
        yield f"{key}.jpg", image(number)
        yield f"{key}.cls", str(number % 7).encode()
        if number % 5:
            yield f"{key}.caption.TXT", f"picture {number} ☺".encode()


def write_tar(path: Path, mode: str, tar_format: int) -> None:
    with tarfile.open(path, mode, format=tar_format, encoding="utf-8") as tar:
        folder = tarfile.TarInfo("d")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in members(""):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1700000000.25
            tar.addfile(info, io.BytesIO(content))


def write_tars(folder: Path) -> None:
    write_tar(folder / "gnu.tar", "w", tarfile.GNU_FORMAT)
    write_tar(folder / "pax.tar", "w", tarfile.PAX_FORMAT)
    write_tar(folder / "packed.tar.gz", "w:gz", tarfile.PAX_FORMAT)
    for name, options in (("writer.tar", {}), ("writer.tar.gz", {"compress": True})):
        with webdataset.TarWriter(str(folder / name), **options) as sink:
            for number in range(SAMPLES):
                sample = {"__key__": f"w/{number:04}", "jpg": image(number), "cls": number % 7}
                if number % 5:
                    sample["caption.txt"] = f"picture {number} ☺"
                sink.write(sample)


def read_tar(path: Path) -> list:
    rows = []
    for sample in webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False):
        caption = sample.get("caption.txt", b"").decode()
        content = sample["jpg"].hex()
        rows.append({"id": sample["__key__"], "bytes": content, "label": int(sample["cls"]), "caption": caption})
    return rows


def write_parquets(folder: Path) -> dict:
    contents = [image(number) for number in range(SAMPLES)]
    captions = [f"picture {number} ☺" if number % 5 else "" for number in range(SAMPLES)]
    labels = [number % 7 for number in range(SAMPLES)]
    expected = {}

    def expect(name: str, ids: list) -> None:
        rows = zip(ids, contents, labels, captions)
        expected[name] = [
            {"id": row_id, "bytes": content.hex(), "label": label, "caption": caption}
            for row_id, content, label, caption in rows
        ]

    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(num_classes=7), "caption": datasets.Value("string")}
    )
    paths = [f"{number:04}.jpg" for number in range(SAMPLES)]
    images = [{"bytes": content, "path": path} for content, path in zip(contents, paths)]
    columns = {"image": images, "label": labels, "caption": captions}
    data = datasets.Dataset.from_dict(columns, features=features)
    data.to_parquet(str(folder / "huggingface.parquet"), batch_size=25)
    expect("huggingface.parquet", paths)

    for codec, version in (("none", "1.0"), ("snappy", "2.6"), ("gzip", "2.6"), ("zstd", "2.6"), ("brotli", "2.6"), ("lz4", "2.6")):
        name = f"{codec}.parquet"
        table = pyarrow.table({"image": contents, "label": labels, "caption": captions})
        page = "2.0" if codec == "zstd" else "1.0"
        pyarrow.parquet.write_table(
            table, folder / name, compression=codec, version=version, row_group_size=17, data_page_version=page
        )
        expect(name, [f"{name}#{number}" for number in range(SAMPLES)])
    return expected


def main() -> None:
    folder = Path(sys.argv[1])
    write_tars(folder)
    expected = {path.name: read_tar(path) for path in sorted(folder.glob("*.tar*"))}
    expected.update(write_parquets(folder))
    (folder / "expected.json").write_text(json.dumps(expected))


main()

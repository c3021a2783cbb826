"""Reads what tests/outputs has written, with the readers that people use, and compares the values.

Called with the folder of the run. Each row n has the uri `synthetic/n`, the tensor of transform.test_tensor, and the label
that tests/outputs asks for. What it expects comes from the jsonl output of the same run.
"""

import csv
import gzip
import io
import json
import sys
from pathlib import Path

import duckdb
import numpy
import polars
import pyarrow.dataset
import pyarrow.parquet
import safetensors.numpy
import webdataset

N_ROWS = 250


def main(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == N_ROWS
    uris = [row["uri"] for row in rows]
    tensors = numpy.array([row["x"] for row in rows], dtype=numpy.float32)
    assert tensors.shape == (N_ROWS, 2, 3)
    read_parquet(folder, rows, uris, tensors)
    read_lines(folder, rows, uris)
    read_archives(folder, uris, tensors)
    read_tensors(folder, uris, tensors)


def read_parquet(folder: Path, rows: list, uris: list, tensors: numpy.ndarray) -> None:
    parts = sorted(folder.glob("p-*.parquet"))
    assert [part.name for part in parts] == [f"p-{number:05}.parquet" for number in range(3)]
    flat = tensors.reshape(N_ROWS, 6)
    field = pyarrow.parquet.read_schema(parts[0]).field("x")
    assert field.type == pyarrow.list_(pyarrow.field("item", pyarrow.float32(), nullable=False), 6), field.type
    assert json.loads(field.metadata[b"shape"]) == [2, 3]
    table = pyarrow.dataset.dataset([str(part) for part in parts]).to_table()
    assert table["uri"].to_pylist() == uris
    assert numpy.array_equal(numpy.array(table["x"].to_pylist(), dtype=numpy.float32), flat)
    assert table["labels"].to_pylist() == [row["labels"] for row in rows]
    codecs = {pyarrow.parquet.ParquetFile(part).metadata.row_group(0).column(0).compression for part in parts}
    assert codecs == {"ZSTD"}
    frame = polars.read_parquet(str(folder / "p-*.parquet"))
    assert frame["uri"].to_list() == uris
    assert frame.schema["x"] == polars.Array(polars.Float32, 6), frame.schema
    assert numpy.array_equal(frame["x"].to_numpy(), flat)
    assert frame["labels"].to_list() == [row["labels"] for row in rows]
    found = duckdb.sql(f"select uri, x, labels from read_parquet('{folder}/p-*.parquet')").fetchall()
    assert [row[0] for row in found] == uris
    assert numpy.array_equal(numpy.array([row[1] for row in found], dtype=numpy.float32), flat)
    assert [row[2] for row in found] == [row["labels"] for row in rows]


def read_lines(folder: Path, rows: list, uris: list) -> None:
    packed = "".join(gzip.open(part, "rt").read() for part in sorted(folder.glob("g-*.jsonl.gz")))
    assert [json.loads(line) for line in packed.splitlines()] == rows
    table = list(csv.DictReader(io.StringIO(gzip.open(folder / "c.csv.gz", "rt").read())))
    assert [row["uri"] for row in table] == uris
    assert [json.loads(row["labels"]) for row in table] == [row["labels"] for row in rows]
    found = duckdb.sql(f"select uri from read_json('{folder}/z.jsonl.zst', format='newline_delimited')").fetchall()
    assert [row[0] for row in found] == uris


def read_archives(folder: Path, uris: list, tensors: numpy.ndarray) -> None:
    archives = [str(archive) for archive in sorted(folder.glob("w-*.tar"))]
    assert len(archives) == 3, archives
    samples = list(webdataset.WebDataset(archives, shardshuffle=False).decode())
    assert [sample["__key__"] for sample in samples] == uris
    assert [sample["json"]["uri"] for sample in samples] == uris
    assert numpy.array_equal(numpy.stack([sample["x.npy"] for sample in samples]), tensors)


def read_tensors(folder: Path, uris: list, tensors: numpy.ndarray) -> None:
    parts = sorted(folder.glob("s-*.safetensors"))
    found = numpy.concatenate([safetensors.numpy.load_file(part)["x"] for part in parts])
    assert numpy.array_equal(found, tensors)
    ids = [json.loads(line) for part in sorted(folder.glob("s-*.ids.jsonl")) for line in part.read_text().splitlines()]
    assert ids == uris
    assert numpy.array_equal(numpy.load(folder / "n.npy"), tensors)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

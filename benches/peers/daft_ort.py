"""Daft with onnxruntime: a class whose instances decode and infer batches of paths, as many as there are threads."""

import daft
import numpy as np
from daft import DataType, Series, col

import job

args = job.arguments()


@daft.cls(max_concurrency=args.threads)
class Classify:
    def __init__(self):
        self.session = job.session(args.model, 1)

    @daft.method.batch(return_dtype=DataType.string(), batch_size=args.batch)
    def __call__(self, uris: Series):
        names = uris.to_pylist()
        logits = job.infer(self.session, np.stack([job.tensor(name, args.draft) for name in names]))
        return [job.line(name, row) for name, row in zip(names, logits)]


if __name__ == "__main__":
    rows = daft.from_pydict({"uri": job.paths(args.folder)}).into_batches(max(args.batch, 16))
    with args.out.open("w") as out:
        for row in rows.select(Classify()(col("uri")).alias("line")).iter_rows():
            out.write(row["line"])
            out.flush()

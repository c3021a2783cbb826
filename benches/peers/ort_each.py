"""onnxruntime in threads, each of which decodes and infers its own images; all of them in one session, which computes on the caller."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import job

args = job.arguments()
session = job.session(args.model, 1)


def classify(names):
    return names, job.infer(session, np.stack([job.tensor(name, args.draft) for name in names]))


with ThreadPoolExecutor(args.threads) as pool, args.out.open("w") as out:
    for names, logits in pool.map(classify, job.batched(job.paths(args.folder), args.batch)):
        job.put(out, names, logits)

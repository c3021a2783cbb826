"""onnxruntime in threads, each of which decodes and infers its own images with a session of one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import job

args = job.arguments()
own = threading.local()


def load():
    own.session = job.session(args.model, 1)


def classify(names):
    return names, job.infer(own.session, np.stack([job.tensor(name, args.draft) for name in names]))


with ThreadPoolExecutor(args.threads, initializer=load) as pool, args.out.open("w") as out:
    for names, logits in pool.map(classify, job.batched(job.paths(args.folder), args.batch)):
        job.put(out, names, logits)

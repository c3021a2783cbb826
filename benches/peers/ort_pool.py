"""onnxruntime the usual way: a pool of threads decodes ahead, one session with as many threads infers batches."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import job

args = job.arguments()
session = job.session(args.model, args.threads)

with ThreadPoolExecutor(args.threads) as pool, args.out.open("w") as out:
    batches = iter(job.batched(job.paths(args.folder), args.batch))
    ahead = deque()
    for _ in range(3):
        if names := next(batches, None):
            ahead.append((names, [pool.submit(job.tensor, name, args.draft) for name in names]))
    while ahead:
        names, tensors = ahead.popleft()
        batch = np.stack([tensor.result() for tensor in tensors])
        if following := next(batches, None):
            ahead.append((following, [pool.submit(job.tensor, name, args.draft) for name in following]))
        job.put(out, names, job.infer(session, batch))

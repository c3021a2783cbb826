"""torch with a pool of threads that decode ahead, and batches that the main thread infers."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import torch

import job
import torch_models

args = job.arguments()
# `--processes` is the number of threads that decode: the two share the cores.
network = torch_models.load(args.model, args.threads)


def tensor(name):
    return torch.from_numpy(job.tensor(name, args.draft))


with ThreadPoolExecutor(args.processes) as pool, args.out.open("w") as out:
    batches = iter(job.batched(job.paths(args.folder), args.batch))
    ahead = deque()
    for _ in range(3):
        if names := next(batches, None):
            ahead.append((names, [pool.submit(tensor, name) for name in names]))
    while ahead:
        names, tensors = ahead.popleft()
        batch = torch.stack([tensor.result() for tensor in tensors])
        if following := next(batches, None):
            ahead.append((following, [pool.submit(tensor, name) for name in following]))
        job.put(out, names, torch_models.infer(network, batch))

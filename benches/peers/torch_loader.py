"""torch's DataLoader with worker processes, and batches that the main process infers."""

import torch
from torch.utils.data import DataLoader, Dataset

import job
import torch_models


class Photographs(Dataset):
    def __init__(self, names, draft):
        self.names, self.draft = names, draft

    def __len__(self):
        return len(self.names)

    def __getitem__(self, n):
        return self.names[n], torch.from_numpy(job.tensor(self.names[n], self.draft))


if __name__ == "__main__":
    args = job.arguments()
    loader = DataLoader(
        Photographs(job.paths(args.folder), args.draft), batch_size=args.batch, num_workers=args.processes, prefetch_factor=2
    )
    batches = iter(loader)
    # Workers are forked first, so that they do not hold the model.
    network = torch_models.load(args.model, args.threads)
    with args.out.open("w") as out:
        for names, tensors in batches:
            job.put(out, names, torch_models.infer(network, tensors))

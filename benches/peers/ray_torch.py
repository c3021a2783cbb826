"""Ray Data with torch: actors, each of which decodes and infers whole batches. See `ray_data`."""

import numpy as np

import job
import ray_data


class Classify:
    def __init__(self, model, threads, draft):
        import torch_models

        self.network, self.draft = torch_models.load(model, threads), draft

    def __call__(self, batch):
        import torch
        import torch_models

        tensors = torch.from_numpy(np.stack([job.tensor(name, self.draft) for name in batch["item"]]))
        return {"uri": batch["item"], "logits": torch_models.infer(self.network, tensors)}


if __name__ == "__main__":
    ray_data.classify(job.arguments(), Classify)

"""Ray Data with onnxruntime: actors, each of which decodes and infers whole batches. See `ray_data`."""

import numpy as np

import job
import ray_data


class Classify:
    def __init__(self, model, threads, draft):
        self.session, self.draft = job.session(model, threads), draft

    def __call__(self, batch):
        tensors = np.stack([job.tensor(name, self.draft) for name in batch["item"]])
        return {"uri": batch["item"], "logits": job.infer(self.session, tensors)}


if __name__ == "__main__":
    ray_data.classify(job.arguments(), Classify)

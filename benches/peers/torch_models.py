"""The models as torch runs them fastest on a CPU: frozen by TorchScript, batch norms folded."""

import torch


def load(model, threads):
    torch.set_num_threads(threads)
    return torch.jit.load(str(model.with_suffix(".pt")))


def infer(network, tensors):
    with torch.inference_mode():
        return network(tensors.contiguous(memory_format=torch.channels_last)).numpy()

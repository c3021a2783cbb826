"""The models as torch runs them fastest on a CPU: frozen by TorchScript, batch norms folded."""

import warnings

import torch

# Newer torch would rather have `torch.compile`, which needs a C++ compiler and half a minute at each start.
warnings.filterwarnings("ignore", category=FutureWarning)


def load(model, threads):
    torch.set_num_threads(threads)
    # What this packs for the processor is not kept in files, so it is done here.
    return torch.jit.optimize_for_inference(torch.jit.load(str(model.with_suffix(".pt"))))


def infer(network, tensors):
    with torch.inference_mode():
        return network(tensors.contiguous(memory_format=torch.channels_last)).numpy()

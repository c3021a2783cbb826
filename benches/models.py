"""Whole models on the CPU: this program's against ONNX Runtime's (and torch's, where it is installed), in turns.

    cargo bench --workspace --features testing --bench layers --no-run
    python3 -m venv venv && venv/bin/pip install numpy onnx onnxruntime     # torch and torchvision too, for its column
    venv/bin/python benches/models.py target/release/deps/layers-… [--rounds N] [MODEL …]

All compute the same networks on images of 224×224, f32, with made-up weights. ONNX Runtime gets graphs that are written here, in the form
that it likes best: batch norms folded, layer norm and GELU as one operation each. This program computes the rows of a batch side by
side; the others run as one instance with a thread for each core and as one instance with one thread for each core. All take small and
larger batches, and of each the best counts. Every round measures all sides one after the
other; what stands there are medians, and the ratio is that of the rounds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SECONDS = 1.0
CORES = len(os.sched_getaffinity(0))


class Graph:
    """An ONNX graph under construction; each method adds an operation and gives the name of what comes out."""

    def __init__(self):
        self.nodes, self.weights = [], []
        self.dice = np.random.default_rng(0)

    def tensor(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values if values.shape == () else np.ascontiguousarray(values), name))
        return name

    def noise(self, *shape, fan_in=None):
        bound = (6 / fan_in) ** 0.5 if fan_in else 0.1
        return self.tensor(self.dice.uniform(-bound, bound, shape).astype(np.float32))

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, n_in, n_out, kernel, stride=1, groups=1, padding=None):
        pad = kernel // 2 if padding is None else padding
        weight = self.noise(n_out, n_in // groups, kernel, kernel, fan_in=n_in // groups * kernel * kernel)
        return self.add("Conv", x, weight, self.noise(n_out), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)

    def linear(self, x, n_in, n_out):
        return self.add("Add", self.add("MatMul", x, self.noise(n_in, n_out, fan_in=n_in)), self.noise(n_out))

    def relu6(self, x):
        return self.add("Clip", x, self.tensor(np.array(0, np.float32)), self.tensor(np.array(6, np.float32)))

    def model(self, output):
        graph = helper.make_graph(
            self.nodes,
            "model",
            [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["rows", 3, 224, 224])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["rows", 1000])],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def resnet50():
    g = Graph()
    x = g.add("Relu", g.conv("images", 3, 64, 7, 2))
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    n_in = 64
    for stage, n_blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(n_blocks):
            stride = 2 if stage and not block else 1
            y = g.add("Relu", g.conv(x, n_in, width, 1))
            y = g.add("Relu", g.conv(y, width, width, 3, stride))
            y = g.conv(y, width, 4 * width, 1)
            shortcut = x if block else g.conv(x, n_in, 4 * width, 1, stride)
            x, n_in = g.add("Relu", g.add("Add", y, shortcut)), 4 * width
    x = g.add("Flatten", g.add("GlobalAveragePool", x))
    return g.model(g.linear(x, n_in, 1000))


def mobilenet_v2():
    g = Graph()
    x, n_in = g.relu6(g.conv("images", 3, 32, 3, 2)), 32
    for expand, n_out, n_blocks, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(n_blocks):
            stride, wide = (1 if block else first_stride), n_in * expand
            y = x if expand == 1 else g.relu6(g.conv(x, n_in, wide, 1))
            y = g.relu6(g.conv(y, wide, wide, 3, stride, groups=wide))
            y = g.conv(y, wide, n_out, 1)
            x, n_in = (g.add("Add", y, x) if stride == 1 and n_in == n_out else y), n_out
    x = g.relu6(g.conv(x, n_in, 1280, 1))
    x = g.add("Flatten", g.add("GlobalAveragePool", x))
    return g.model(g.linear(x, 1280, 1000))


def vit_base_patch16_224():
    g = Graph()
    width, heads, tokens = 768, 12, 197
    shape = lambda *sizes: g.tensor(np.array(sizes, np.int64))
    norm = lambda x: g.add("LayerNormalization", x, g.tensor(np.ones(width, np.float32)), g.noise(width), axis=-1, epsilon=1e-6)
    x = g.conv("images", 3, width, 16, 16, padding=0)
    x = g.add("Transpose", g.add("Reshape", x, shape(0, width, tokens - 1)), perm=[0, 2, 1])
    rows = g.add("Shape", x, start=0, end=1)
    token = g.add("Expand", g.noise(1, 1, width), g.add("Concat", rows, shape(1, width), axis=0))
    x = g.add("Add", g.add("Concat", token, x, axis=1), g.noise(1, tokens, width))
    for _ in range(12):
        y = norm(x)
        split = [g.add("Reshape", g.linear(y, width, width), shape(0, 0, heads, width // heads)) for _ in range(3)]
        query, key, value = (g.add("Transpose", part, perm=perm) for part, perm in zip(split, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
        scores = g.add("Mul", g.add("MatMul", query, key), g.tensor(np.array((width // heads) ** -0.5, np.float32)))
        y = g.add("MatMul", g.add("Softmax", scores, axis=-1), value)
        y = g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), shape(0, 0, width))
        x = g.add("Add", g.linear(y, width, width), x)
        y = g.add("Gelu", g.linear(norm(x), width, 4 * width))
        x = g.add("Add", g.linear(y, 4 * width, width), x)
    x = g.add("Gather", norm(x), g.tensor(np.array(0, np.int64)), axis=1)
    return g.model(g.linear(x, width, 1000))


MODELS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "vit_base_patch16_224": vit_base_patch16_224}


class Ours:
    """The bench's program, told to take a turn by a line."""

    def __init__(self, program, model, threads, rows):
        command = [program, "--turns", "--threads", str(threads), "--batch", str(rows), f"model {model}"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.turn()

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seconds, cpu = self.process.stdout.readline().rstrip().rsplit("\t")[-2:]
        self.process.stdout.readline()
        return float(seconds), float(cpu)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Calls:
    """Calls of `instances` functions side by side, over `rows` images each."""

    def __init__(self, calls, rows):
        self.calls, self.rows = calls, rows
        for call in calls:
            call()

    def turn(self):
        images = [0] * len(self.calls)
        end = time.monotonic() + SECONDS

        def work(n):
            while time.monotonic() < end:
                self.calls[n]()
                images[n] += self.rows

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(self.calls))]
        start, spent = time.monotonic(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (time.monotonic() - start) / sum(images), (time.process_time() - spent) / sum(images)

    def close(self):
        self.calls = []


def runtime(file, threads, instances, rows):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    images = np.random.default_rng(1).uniform(-1, 1, (rows, 3, 224, 224)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    # Sessions may be called from several threads, and then share their weights as our instances do.
    return Calls([lambda: session.run(None, {"images": images})] * instances, rows)


def torch_model(name, threads, instances, rows):
    import torch
    import torchvision

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = getattr(torchvision.models, {"vit_base_patch16_224": "vit_b_16"}.get(name, name))(weights=None).eval()
    images = torch.rand(rows, 3, 224, 224) * 2 - 1
    model = torch.jit.freeze(torch.jit.trace(model, images, check_trace=False))

    def call():
        with torch.inference_mode():
            model(images)

    return Calls([call] * instances, rows)


def compare(name, program, rounds, has_torch):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(MODELS[name](), file)
        sides = {f"flowgpu, {CORES} threads, batch {rows}": Ours(program, name, CORES, rows) for rows in (CORES, 8)}
        for threads, instances in {(CORES, 1), (1, CORES)}:
            for rows in (1, 8):
                what = f"{threads} threads × {instances}, batch {rows}"
                sides[f"onnxruntime, {what}"] = runtime(file, threads, instances, rows)
                if has_torch:
                    sides[f"torch, {what}"] = torch_model(name, threads, instances, rows)
        found = {side: [] for side in sides}
        for _ in range(rounds):
            for side, measured in sides.items():
                found[side].append(measured.turn())
        for measured in sides.values():
            measured.close()
    median = {side: statistics.median(seconds for seconds, _ in turns) for side, turns in found.items()}
    ours = min((side for side in sides if side.startswith("flowgpu")), key=median.get)
    print(f"{name}: {rounds} rounds in turns, ms an image, medians")
    for side, turns in found.items():
        cpu = statistics.median(cpu for _, cpu in turns)
        print(f"  {side:<42} {median[side] * 1e3:8.2f}, of processors {cpu * 1e3:8.2f}")
    for other in ("onnxruntime", "torch") if has_torch else ("onnxruntime",):
        best = min((side for side in sides if side.startswith(other)), key=median.get)
        ratios = sorted(theirs[0] / mine[0] for theirs, mine in zip(found[best], found[ours]))
        print(f"  images/s over {best}: {statistics.median(ratios):.2f}, by rounds {' '.join(f'{r:.2f}' for r in ratios)}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program", help="the bench `layers` as cargo built it")
    options.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL", help=", ".join(MODELS))
    options.add_argument("--rounds", type=int, default=9)
    options = options.parse_intermixed_args()
    unknown = set(options.models) - set(MODELS)
    if unknown:
        sys.exit(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    try:
        import torch

        version = f", torch {torch.__version__}"
    except (ImportError, OSError, ValueError) as error:
        version = f", no torch ({type(error).__name__})"
    cpu = next(line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line)
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, {CORES} cores {cpu}, load {load}, onnxruntime {onnxruntime.__version__}{version}")
    for name in options.models:
        compare(name, options.program, options.rounds, "no torch" not in version)


main()

"""Decoding alone: photographs → shorter side 256, middle 224 × 224, by several libraries on one core and on all, in turns.

    decode.py FOLDER [--rounds N] [--large]

FOLDER is `target/peers`, which `run.sh` makes. Each library runs in a process of its own, over the photographs again and again for two
seconds, on a pool of as many threads as cores where it has none itself; importing it is not counted. flowgpu is the whole program, files
read and lines written, less what a run of one image takes. `Pillow load()` is libjpeg-turbo's decoding and nothing else. OpenCV's resize is
bilinear without antialiasing, the others' is with it. A library that is not installed is left out.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import job

HERE = Path(__file__).resolve().parent
FLOWGPU = os.environ.get("FLOWGPU", str(HERE.parent.parent / "target/release/flowgpu"))
SECONDS = 2.0


def pillow_load():
    from PIL import Image

    return lambda path: Image.open(path).load()


def pillow():
    return job.pixels


def pillow_draft():
    return lambda path: job.pixels(path, draft=True)


def torchvision():
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)

    def decode(path):
        image = functional.resize(decode_jpeg(read_file(path), ImageReadMode.RGB), [256], antialias=True)
        return functional.center_crop(image, [224, 224])

    return decode


def opencv(flag=None):
    import cv2

    cv2.setNumThreads(1)

    def decode(path):
        image = cv2.imread(path, cv2.IMREAD_COLOR if flag is None else getattr(cv2, flag))
        height, width = image.shape[:2]
        scale = 256 / min(height, width)
        image = cv2.resize(image, (max(256, int(width * scale)), max(256, int(height * scale))), interpolation=cv2.INTER_LINEAR)
        top, left = (image.shape[0] - 224) // 2, (image.shape[1] - 224) // 2
        return cv2.cvtColor(image[top : top + 224, left : left + 224], cv2.COLOR_BGR2RGB)

    return decode


def opencv_reduced():
    return opencv("IMREAD_REDUCED_COLOR_4")


def dali(paths, threads):
    """Images that were decoded for as long as it takes: DALI has threads of its own."""
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=32, num_threads=threads, device_id=None)
    def decode():
        files, _ = fn.readers.file(files=paths)
        images = fn.resize(fn.decoders.image(files, device="cpu"), resize_shorter=256, interp_type=types.INTERP_LINEAR)
        return fn.crop(images, crop=(224, 224))

    pipeline = decode()
    pipeline.build()
    pipeline.run()
    return lambda: (pipeline.run(), 32)[1]


# name: what gives a function of a path, or None where the library has its own loop
LIBRARIES = {
    "Pillow load()": pillow_load,
    "Pillow": pillow,
    "torchvision decode_jpeg": torchvision,
    "OpenCV": opencv,
    "DALI, CPU": None,
}
SCALED = {"Pillow, draft": pillow_draft, "OpenCV, reduced": opencv_reduced}


def one(library, paths, threads):
    """Images, seconds and processor seconds of one library, in this process."""
    if library == "DALI, CPU":
        step = dali(paths, threads)
    else:
        decode = {**LIBRARIES, **SCALED}[library]()
        decode(paths[0])
        pool, endless = ThreadPoolExecutor(threads), itertools.cycle(paths)
        chunk = 4 * threads

        def step():
            for _ in pool.map(decode, itertools.islice(endless, chunk)):
                pass
            return chunk

    start, cpu, n = time.monotonic(), time.process_time(), 0
    while time.monotonic() - start < SECONDS:
        n += step()
    return {"images": n, "seconds": time.monotonic() - start, "cpu": time.process_time() - cpu}


def measured(library, folder, n_images, cores):
    """Images a second and processor milliseconds an image."""
    bound = ["taskset", "-c", ",".join(map(str, range(cores)))]
    if not library.startswith("flowgpu"):
        command = [*bound, sys.executable, __file__, str(folder), "--one", library, "--threads", str(cores)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(result.stderr.strip().splitlines()[-1])
        result = json.loads(result.stdout)
        return result["images"] / result["seconds"], 1000 * result["cpu"] / result["images"]
    scale = "auto" if library.endswith("scaled") else "off"
    sets = ["--set", f"photos={folder}", "--set", f"jpeg_scale={scale}", "--set", f"out={folder.parent}/decoded.jsonl"]
    figures = []
    for limit in (1, n_images):
        command = [*bound, FLOWGPU, "run", "-q", "--fresh", "--state", str(folder.parent / "state"), "--limit", str(limit), *sets]
        start = time.monotonic()
        process = subprocess.Popen([*command, str(HERE / "decode.yaml")])
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"status {status}")
        figures.append((time.monotonic() - start, usage.ru_utime + usage.ru_stime))
    (least, least_cpu), (all_of_it, cpu) = figures
    return (n_images - 1) / (all_of_it - least), 1000 * (cpu - least_cpu) / (n_images - 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="photographs of 4000×3000, also decoded scaled")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one, job.paths(args.folder), args.threads)))
        return
    folder = args.folder.resolve() / ("large" if args.large else "photographs")
    n_images, n_cores = len(job.paths(folder)), len(os.sched_getaffinity(0))
    libraries = ["flowgpu", *LIBRARIES] + (["flowgpu, scaled", *SCALED] if args.large else [])
    rates = {}
    for _ in range(args.rounds):
        for library in list(libraries):
            for cores in sorted({1, n_cores}):
                try:
                    figures = measured(library, folder, n_images, cores)
                    rates.setdefault((library, cores), []).append(figures)
                except RuntimeError as error:
                    print(f"{library} is left out: {error}", file=sys.stderr)
                    libraries.remove(library)
                    break
    print(f"{n_images} photographs, medians of {args.rounds} rounds (lowest to highest), load {os.getloadavg()[0]:.1f}\n")
    print(f"| | images/s, one core | images/s, {n_cores} cores | of one core | CPU, ms an image |\n|---|---|---|---|---|")
    middle = {key: statistics.median(rate for rate, _ in some) for key, some in rates.items()}
    for library in sorted(libraries, key=lambda library: -middle[library, n_cores]):
        spread = [rate for rate, _ in rates[library, n_cores]]
        cpu = statistics.median(cpu for _, cpu in rates[library, 1])
        print(f"| {library} | {middle[library, 1]:.1f} | **{middle[library, n_cores]:.1f}** ({min(spread):.1f} to {max(spread):.1f}) "
              f"| {middle[library, n_cores] / middle[library, 1]:.2f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()

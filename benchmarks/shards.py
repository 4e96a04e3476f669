"""Images a second from shards, in random batches, beside the same bytes in memory. One process, one thread.

    python benchmarks/shards.py [--images 20000] [--shards 64]

Seconds are of the processor, so that a busy machine does not count; the files are in the system's cache.
"""

import argparse
import io
import os
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from gedi.data import Pixels, StoredImages, load_shards, write_shards

BATCH = 128


def smooth(n, side, rng):
    """Images that JPEG shrinks as it shrinks photographs: noise, enlarged eight times, and some on top."""
    coarse = torch.from_numpy(rng.random((n, 3, side // 8, side // 8), dtype=np.float32))
    x = torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear") + 0.03 * torch.randn(n, 3, side, side)
    return (x.clamp(0, 1) * 255).to(torch.uint8)


def pack(x, folder, shards):
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(x)), shards)):
        with tarfile.open(folder / f"train-{number:04}.tar", "w") as tar:
            for i in part:
                held = io.BytesIO()
                Image.fromarray(x[i].permute(1, 2, 0).numpy()).save(held, "jpeg", quality=90)
                about = tarfile.TarInfo(f"{i:06}.jpg")
                about.size = held.tell()
                held.seek(0)
                tar.addfile(about, held)


def rate(points, n, seconds=1.0):
    """Images a second, the best of three."""
    g, best = torch.Generator().manual_seed(0), 0.0
    for _ in range(3):
        done, began = 0, time.process_time()
        while time.process_time() - began < seconds:
            points[torch.randint(n, (BATCH,), generator=g)]
            done += BATCH
        best = max(best, done / (time.process_time() - began))
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--shards", type=int, default=64)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    pixels = Pixels(mean=0.5, std=0.5)
    for side in (32, 96):
        n = args.images * 32 // side
        x = smooth(n, side, np.random.default_rng(0))
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GEDI_CACHE_DATA"] = str(Path(folder) / "kept")
            arrays, tars = Path(folder) / "npy", Path(folder) / "tar"
            write_shards(x, arrays, per_shard=-(-n // args.shards))
            pack(x, tars, args.shards)
            print(f"{side} x {side} in memory: {rate(StoredImages(x, pixels), n):,.0f} images/s")
            for kind, place in (("npy", arrays), ("jpeg in tar", tars)):
                began = time.perf_counter()
                held = load_shards(place)
                first, began = time.perf_counter() - began, time.perf_counter()
                held = load_shards(place)
                again = time.perf_counter() - began
                speed = rate(StoredImages(held.train, pixels), len(held.train))
                opened = f"opened in {first:.2f} s, then {again:.2f} s"
                print(f"{side} x {side} {kind}: {speed:,.0f} images/s, {opened}; {n:,} in {args.shards}", flush=True)


if __name__ == "__main__":
    main()

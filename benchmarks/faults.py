"""Whether a run that is killed again and again ends bit for bit as one that nothing befell.

    python benchmarks/faults.py [--kills 20] [--seed 0] [toy] [images]

Each kind of run is made once whole, then once killed with SIGKILL at random moments of its life, the start and the
measuring after the training among them, and resumed until it ends. The model and the logged lines must be the same
bytes. With ``--damage`` the newest checkpoint also loses its last byte after every third kill.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# as `gedi`, but with a checkpoint every 20 iterations, so that runs of seconds have many
PROGRAM = "import gedi.fitting, gedi.cli; gedi.fitting.CHECKPOINT_EVERY = 20; gedi.cli.main()"
RUNS = {
    "toy": ["moons", "data.n_train=1000", "stage1.iterations=300", "stage2.iterations=200", "n_init=2"],
    "images": ["digits", "model.width=8", "stage1.iterations=60", "stage2.iterations=60", "log_every=5"],
}


def start(kind, path):
    name, *settings = RUNS[kind]
    options = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-c", PROGRAM, "run", name, "--out", str(path), "--resume", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(process):
    said = process.communicate()[1]
    if process.returncode:
        sys.exit(f"a run ended with code {process.returncode}: {said}")


def learnt(path):
    return [(path / name).read_bytes() for name in ("model/model.safetensors", "metrics.jsonl")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=list(RUNS), metavar="toy|images")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--damage", action="store_true")
    options = parser.parse_args()
    for kind in options.kinds:
        moments = random.Random(f"{options.seed}/{kind}")
        with tempfile.TemporaryDirectory() as folder:
            whole, cut = Path(folder, "whole"), Path(folder, "cut")
            began = time.monotonic()
            finish(start(kind, whole))
            seconds = time.monotonic() - began
            kills = lives = damaged = 0
            while kills < options.kills:
                lives += 1
                process = start(kind, cut)
                try:
                    process.wait(moments.uniform(0, seconds))
                    finish(process)  # it was done before its moment came: kill it in another life, from the start
                    assert learnt(cut) == learnt(whole), f"{kind}: life {lives} ended in another model"
                    cut = Path(folder, f"cut{lives}")
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    kills += 1
                    files = sorted(cut.glob("checkpoints/*.pt"))
                    if options.damage and kills % 3 == 0 and len(files) > 1:
                        files[-1].write_bytes(files[-1].read_bytes()[:-1])
                        damaged += 1
            finish(start(kind, cut))
            same = learnt(cut) == learnt(whole)
            print(f"{kind}: {kills} kills of a run of {seconds:.0f} s, {damaged} damaged checkpoints: ", end="")
            print("the same bytes" if same else "NOT THE SAME", flush=True)
            if not same:
                sys.exit(1)


if __name__ == "__main__":
    main()

"""Memory grows with the rows, never with their square: what is judged is bounded."""

import subprocess
import sys

import pytest

RUN = """
import resource, sys, tempfile, torch
from gedi.config import override, parse
from gedi.data import Dataset
from gedi.presets import preset
from gedi.report import write_report
from gedi.directory import RunDirectory
from gedi.fitting import prepare
from gedi.runs import execute

torch.set_num_threads(1)
short = ["model.clusters=2", "n_init=1", "stage1.iterations=5", "stage2.iterations=5", "walk.steps=10"]

def peak(n):
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(n, 2, generator=g), torch.randint(0, 2, (n,), generator=g)
    data = Dataset("own", x[n // 5 :], x[: n // 5], y[n // 5 :], y[: n // 5])
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory.create(folder + "/run")
        execute(prepare(parse(override(preset("toy"), short)), data=data), directory)
        write_report(directory)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # megabytes

print(peak(12_000), peak(120_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
def test_ten_times_the_rows_take_a_few_megabytes_more():
    """Of 120,000 rows, 1-NN and MMD took 24,000 x 24,000 distances: 4.6 GB each."""
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, timeout=300, check=True)
    few, many = map(float, done.stdout.split())
    assert many - few < 150

"""Two processes for a test, each from a fresh interpreter."""

import multiprocessing
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def two(tmp_path_factory):
    """Run a function of :mod:`ranks` in two processes; what each saved."""
    context = multiprocessing.get_context("spawn")  # forked torch threads may hang

    def run(function, *arguments):
        place = tmp_path_factory.mktemp("two")
        started = [context.Process(target=function, args=(rank, 2, str(place), *arguments)) for rank in range(2)]
        for process in started:
            process.start()
        for process in started:
            process.join(120)
        codes = [process.exitcode for process in started]
        for process in started:
            process.kill()
        assert codes == [0, 0]
        return [torch.load(place / f"found{rank}.pt", weights_only=True) for rank in range(2)]

    return run

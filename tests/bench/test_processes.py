"""Two processes against one: a quick benchmark leaves it out, and a pair of processes takes steps together."""

import pytest

from gedi.bench.findings import LeftOut
from gedi.bench.processes import _steps, processes
from gedi.bench.timing import QUICK


def test_a_quick_benchmark_leaves_it_out_and_says_so():
    (found,) = processes(QUICK)
    assert isinstance(found, LeftOut)
    assert "--quick" in found.why


@pytest.mark.slow
def test_a_pair_takes_steps_together():
    assert 0 < _steps("toy step, stage 2, batch 128", 2, 1) < 5


@pytest.mark.slow
def test_a_process_that_fails_is_not_measured():
    with pytest.raises(RuntimeError, match="ended with"):
        _steps("no such step", 1, 1)

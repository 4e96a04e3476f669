"""Functions in turns: which number is told, on a clock that the test winds itself."""

import subprocess
import sys
import time

import pytest

from gedi.bench.timing import Effort, Moment, Turns, in_turns, with_children


class FakeClock:
    """Time passes only when a function says so; the wall's clock runs twice as fast."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return Moment(self.seconds, 2 * self.seconds)

    def taking(self, *durations):
        """A function that takes these times, one call after the other, the last for ever."""
        left = list(durations)

        def function():
            self.seconds += left.pop(0) if len(left) > 1 else left[0]

        return function


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not count them")
def test_a_process_that_was_started_costs_the_processor_too():
    began, own = with_children(), time.process_time()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert with_children() - began > 0.25 > time.process_time() - own


def test_the_ratio_is_the_median_over_blocks_and_not_that_of_the_medians():
    turns = Turns(cpu={"a": [1.0, 10.0, 4.0], "b": [1.0, 2.0, 4.0]}, wall={"a": [3.0] * 3, "b": [1.0] * 3})
    found = turns.compare("a", "b")
    assert found.value == 1.0  # of 1, 5, 1; the medians' ratio would be 2
    assert (found.low, found.high) == (1.0, 3.0)
    assert found.wall == 3.0
    assert (found.over_ms, found.under_ms) == (4000.0, 2000.0)


def test_a_slow_moment_of_one_block_does_not_move_the_ratio():
    clock = FakeClock()
    # warm-up and calibration take two calls; then one block of the slow function is hit by something else
    slow, fast = clock.taking(3, 3, 3, 90, 3), clock.taking(1)
    turns = in_turns({"slow": slow, "fast": fast}, Effort(blocks=5, seconds=0.1, limit=1000), clock)
    assert len(turns.cpu["slow"]) == 5
    assert turns.compare("slow", "fast").value == pytest.approx(3)


def test_the_first_call_does_not_count():
    clock = FakeClock()
    turns = in_turns({"a": clock.taking(500, 1)}, Effort(blocks=3, seconds=0.1, limit=1000), clock)
    assert turns.cpu["a"] == [1.0] * 3
    assert turns.wall["a"] == [2.0] * 3


def test_a_block_has_as_many_calls_as_fit_and_slow_functions_get_fewer_blocks():
    clock, called = FakeClock(), []

    def short():
        called.append(1)
        clock.seconds += 0.01

    turns = in_turns({"short": short}, Effort(blocks=4, seconds=0.2, limit=1000), clock)
    assert len(called) == 2 + 4 * 10  # the wall's clock fills the block: 0.02 s a call
    assert turns.cpu["short"] == pytest.approx([0.01] * 4)
    assert len(in_turns({"long": clock.taking(50)}, Effort(blocks=9, limit=500), clock).cpu["long"]) == 5
    assert len(in_turns({"long": clock.taking(50)}, Effort(blocks=9, limit=1), clock).cpu["long"]) == 3


def test_a_block_lasts_until_the_clock_has_ticked():
    """A processor's clock may count in ticks: what is shorter takes no time by it."""
    clock = FakeClock()
    ticking = lambda: Moment(0.5 * (clock.seconds // 0.5), 2 * clock.seconds)  # noqa: E731
    turns = in_turns({"short": clock.taking(0.01)}, Effort(blocks=3, seconds=0.1, limit=1000), ticking)
    assert all(0 < seconds < 0.2 for seconds in turns.cpu["short"])


def test_sums_of_functions_can_be_compared():
    seconds = {"step": [2.0, 2.0], "walk": [10.0, 30.0], "plain": [12.0, 8.0]}
    assert Turns(seconds, seconds).compare("plain", {"step": 1, "walk": 0.1}).value == pytest.approx((4 + 1.6) / 2)


def test_every_second_round_goes_backwards():
    clock, order = FakeClock(), []

    def called(name):
        def function():
            order.append(name)
            clock.seconds += 1

        return function

    in_turns({"a": called("a"), "b": called("b")}, Effort(blocks=3, seconds=0.1), clock)
    assert "".join(order[2:]) == "abbaab"

"""Progress without a terminal: a plain line now and then."""

import io
import os
import re
import subprocess
import sys

import pytest

from gedi.config import override, parse
from gedi.presets import preset
from gedi.report import Progress

CONFIG = parse(override(preset("circles"), ["stage1.iterations=1000", "stage2.iterations=500", "n_init=2"]))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def lines_of(seconds_a_record, stage="stage1", records=20):
    """The lines of a stage of 1000 iterations logged every 50, each so many seconds after the last."""
    stream, clock = io.StringIO(), Clock()
    with Progress(CONFIG, stream, clock) as progress:
        for k in range(1, records + 1):
            clock.now += seconds_a_record
            progress({"stage": stage, "iteration": 50 * k, "generative": 0.25, "denoising": 1.5})
    return stream.getvalue().splitlines()


def test_a_quick_stage_has_a_line_at_its_start_and_one_at_its_end():
    first, last = lines_of(0.1)
    assert first == "training: stage1 1000 iterations, stage2 500 iterations, up to 2 tries"
    assert last == "stage1: 1000 of 1000  gap 0.25  score 1.50  500 it/s"


def test_a_tenth_is_told_but_not_more_often_than_every_ten_seconds():
    assert [line.split()[1] for line in lines_of(6)[1:]] == [
        str(n) for n in (150, 250, 350, 450, 550, 650, 750, 850, 950, 1000)
    ]


def test_a_slow_stage_is_told_every_half_minute_with_its_speed_and_the_time_left():
    told = lines_of(40, records=4)[1:]
    assert [line.split()[1] for line in told] == ["100", "150", "200"]
    assert told[0] == "stage1: 100 of 1000  gap 0.25  score 1.50  1.2 it/s  12 min left"


def test_tries_are_told_apart_and_events_are_no_progress():
    stream = io.StringIO()
    with Progress(CONFIG, stream, Clock()) as progress:
        progress({"stage": "stage2", "iteration": 500, "restart": 1, "event": "align"})
        progress({"stage": "stage2", "iteration": 500, "restart": 1, "swapped_walk": 0.5})
    assert stream.getvalue().splitlines()[1:] == ["stage2#2: 500 of 500  walk 0.50"]


def test_a_training_goes_on_when_nobody_reads():
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with Progress(CONFIG, Closed(), Clock()) as progress:
        progress({"stage": "stage1", "iteration": 1000, "generative": 0.25})


@pytest.mark.parametrize("quiet", [False, True])
def test_a_piped_run_tells_its_progress_on_standard_error_unless_it_shall_not(tmp_path, quiet):
    settings = ["data.n_train=300", "data.n_test=100", "stage1.iterations=20", "stage2.iterations=20", "walk.steps=5",
                "density.buffer=500", "n_init=1", "log_every=5"]  # fmt: skip
    variables = {name: value for name, value in os.environ.items() if name != "GEDI_QUIET"}
    options = [word for setting in settings for word in ("--set", setting)] + ["--quiet"] * quiet
    done = subprocess.run(
        [sys.executable, "-m", "gedi", "run", "circles", "--out", tmp_path / "run", *options],
        env=variables, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "training:" not in done.stdout
    if quiet:
        assert done.stderr == ""
        return
    begin, *stages = done.stderr.splitlines()
    assert begin == "training: stage1 20 iterations, stage2 20 iterations"
    assert [line.split("  ")[0] for line in stages] == ["stage1: 20 of 20", "stage2#1: 20 of 20"]
    assert re.search(r"[\x00-\x09\x0b-\x1f]", done.stderr) is None

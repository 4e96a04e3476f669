"""Loggers: TensorBoard has what metrics.jsonl has, any Fabric logger is taken by name, a wrong name is told."""

import csv
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gedi import cli
from gedi.config import override, parse
from gedi.devices import make_fabric
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.fitting import prepare
from gedi.loggers import figures, make_logger
from gedi.presets import preset
from gedi.runs import execute

TINY = [
    *("data.n_train=100", "data.n_test=50", "stage1.iterations=6", "stage2.iterations=4", "walk.steps=2"),
    *("sampling.buffer=150", "log_every=2", "n_init=2", "good_enough=0", "stage1.batch_size=32"),
    *("stage2.batch_size=32",),
]


def run(path, *wishes):
    fabric = make_fabric(loggers=[make_logger(wish, path) for wish in wishes])
    execute(prepare(parse(override(preset("moons"), TINY)), fabric=fabric), RunDirectory.create(path))
    for logger in fabric.loggers:
        logger.finalize("success")
    return RunDirectory.open(path).metrics()


def test_tensorboard_has_every_logged_figure_at_its_iteration_of_the_whole_run(tmp_path):
    records = run(tmp_path / "run", "tensorboard")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    for name in ("stage1/generative", "stage2/swapped_walk"):
        stage, figure = name.split("/")
        expected = [record[figure] for record in records if record["stage"] == stage and figure in record]
        assert [event.value for event in events.Scalars(name)] == pytest.approx(expected)
    assert [event.step for event in events.Scalars("stage1/loss")] == [2, 4, 6]
    assert [event.step for event in events.Scalars("stage2/loss")] == [8, 10, 12, 14]  # the second try goes on


def test_any_fabric_logger_is_taken_by_its_path(tmp_path):
    records = run(tmp_path / "run", f"lightning_fabric.loggers.CSVLogger:root_dir={tmp_path},name=mine,version=a")
    with (tmp_path / "mine" / "a" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    losses = [float(row["stage1/loss"]) for row in rows if row["stage1/loss"]]
    assert losses == pytest.approx([record["loss"] for record in records if record["stage"] == "stage1"])


def test_words_and_nested_figures_stay_in_the_file():
    record = {"stage": "stage1", "iteration": 5, "loss": 1.5, "event": "guard", "softened": {"learning_rate": 0.1}}
    assert figures(record) == {"stage1/loss": 1.5}


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("tensorbord", "--logger takes tensorboard or the path of a Fabric logger"),
        ("lightning_fabric.loggers.CSVLoger", "CSVLoger"),
        ("pathlib.Path", "must be a Fabric logger"),
        ("lightning_fabric.loggers.CSVLogger:nam=x", "give what it needs as"),
        ("lightning_fabric.loggers.CSVLogger:name", "options as key=value"),
    ],
)
def test_a_logger_that_does_not_exist_is_told(tmp_path, wish, message):
    with pytest.raises(UserError, match=message):
        make_logger(wish, tmp_path)


def test_the_flag_writes_events_beside_the_lines(tmp_path, monkeypatch, capsys):
    options = [word for setting in TINY for word in ("--set", setting)]
    monkeypatch.setattr(
        sys, "argv", ["gedi", "run", "moons", "--out", str(tmp_path / "run"), *options, "--logger", "tensorboard"]
    )
    monkeypatch.setattr("gedi.report.write_report", lambda directory: "nowhere")
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert list((tmp_path / "run" / "tensorboard").glob("events.out.*"))

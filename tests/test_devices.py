"""Where a run is computed: what is refused before anything starts, and how processes are counted."""

import pytest
import torch
from lightning_fabric.strategies import DDPStrategy, ModelParallelStrategy
from lightning_fabric.utilities.rank_zero import rank_zero_only

from gedi.config import override, parse
from gedi.devices import make_fabric, processes_here
from gedi.errors import UserError
from gedi.fitting import prepare
from gedi.presets import preset


@pytest.fixture(autouse=True)
def _rank_of_this_process(monkeypatch):
    """Fabric keeps the rank for the whole process, and loggers of later tests would fall silent."""
    monkeypatch.setattr(rank_zero_only, "rank", getattr(rank_zero_only, "rank", 0), raising=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accelerator": "gpus"}, "unknown accelerator 'gpus'"),
        ({"strategy": "dp"}, "unknown strategy 'dp': did you mean 'ddp'"),
        ({"precision": "bf16"}, "unknown precision 'bf16': did you mean 'bf16-mixed'"),
        ({"devices": 0}, "--devices and --num-nodes must be at least 1, got 0 and 1"),
        ({"strategy": "fsdp"}, "it needs --devices or --num-nodes above 1"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(options, message):
    with pytest.raises(UserError, match=message) as caught:
        make_fabric(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there_is_told():
    with pytest.raises(UserError, match="--accelerator cuda, --devices 1: "):
        make_fabric("cuda")


def test_one_process_has_no_strategy_and_several_have_the_one_asked_for():
    assert make_fabric().world_size == 1
    assert isinstance(make_fabric(devices=2).strategy, DDPStrategy)
    assert isinstance(make_fabric(devices=2, strategy="fsdp").strategy, ModelParallelStrategy)


def test_torchrun_says_how_many_there_are(monkeypatch):
    torchrun = {"RANK": 5, "LOCAL_RANK": 1, "WORLD_SIZE": 8, "LOCAL_WORLD_SIZE": 4, "GROUP_RANK": 1}
    for name, value in {**torchrun, "TORCHELASTIC_RUN_ID": "x", "MASTER_ADDR": "here", "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))
    fabric = make_fabric()
    assert (fabric.world_size, fabric.global_rank) == (8, 5)


def test_processes_of_a_machine_are_what_torchrun_says_or_what_was_given(monkeypatch):
    assert processes_here(3) == 3
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)
    assert processes_here(1) == 4


def test_the_state_of_a_run_has_the_scale_of_half_precision():
    run = prepare(parse(override(preset("moons"), ["data.n_train=200", "density.buffer=200"])))
    plugin = run.trainer.fabric.strategy.precision
    plugin.state_dict = lambda: {"scale": 1024.0}
    taken = []
    plugin.load_state_dict = taken.append
    run.trainer.load_state_dict(run.trainer.state_dict())
    assert taken == [{"scale": 1024.0}]

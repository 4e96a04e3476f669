"""Where a run is computed: device, precision, processes and machines, by lightning-fabric."""

import logging
import os
from collections.abc import Sequence
from typing import Any

from lightning_fabric import Fabric
from lightning_fabric.strategies import DDPStrategy, ModelParallelStrategy, Strategy
from torch import nn
from torch.distributed.fsdp import fully_shard

from gedi.errors import UserError, unknown
from gedi.names import ACCELERATORS, PRECISIONS, STRATEGIES

_MOST_DEVICES = 64
_MOST_NODES = 10_000


def make_fabric(
    accelerator: str = "cpu",
    devices: int = 1,
    num_nodes: int = 1,
    strategy: str | None = None,
    precision: str = "32-true",
    loggers: Sequence[Any] = (),
) -> Fabric:
    """A Fabric that is not launched yet.

    Under torchrun the processes are there already, and how many there are is taken from it. Under SLURM they are there
    too, and ``devices`` and ``num_nodes`` must say how many. Else launching starts the program again for every further
    device.

    Args:
        accelerator: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        devices: processes on this machine, one for each device.
        num_nodes: machines.
        strategy: ``ddp`` keeps the whole model in every process, ``fsdp`` spreads weights and optimiser over them; None
            is ``ddp`` if there is more than one process.
        precision: of the forward passes, as Fabric names it.
        loggers: any Fabric loggers, which get every record of ``metrics.jsonl``.

    Example:
        >>> make_fabric(strategy="dpd")
        Traceback (most recent call last):
        gedi.errors.UserError: unknown strategy 'dpd': did you mean 'ddp'? Valid: ddp, fsdp
    """
    devices, num_nodes = _of_torchrun() or (devices, num_nodes)
    _check(accelerator, devices, num_nodes, strategy, precision)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it announces every process
    many = devices * num_nodes > 1
    try:
        return Fabric(
            accelerator=accelerator,
            devices=devices,
            num_nodes=num_nodes,
            strategy=_strategy(strategy or "ddp", devices * num_nodes) if many or strategy == "fsdp" else "auto",
            precision=precision,
            loggers=list(loggers),
        )
    except (ValueError, RuntimeError) as error:  # a device or a precision that is not to be had here
        raise UserError(f"--accelerator {accelerator}, --devices {devices}: {_first_line(error)}") from error


def processes_here(devices: int) -> int:
    """Processes of the run on this machine: what torchrun says, else ``devices``."""
    here, _ = _of_torchrun() or (devices, 1)
    return here


def _of_torchrun() -> tuple[int, int] | None:
    """Processes on each machine, and machines."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    here = int(os.environ["LOCAL_WORLD_SIZE"])
    return here, int(os.environ["WORLD_SIZE"]) // here


def _strategy(kind: str, size: int) -> Strategy:
    if kind == "fsdp":
        return ModelParallelStrategy(_spread, data_parallel_size=size, tensor_parallel_size=1)
    # Stages leave some weights without gradients. Buffers need no sending: every process computes the same statistics.
    return DDPStrategy(find_unused_parameters=True, forward_sync_buffers=False)


def _spread(network: nn.Module, mesh: Any) -> nn.Module:
    for parameter in network.parameters():
        parameter.data = parameter.data.contiguous()  # it refuses channels-last ones
    # one unit: samplers ask for all of the energy's weights many times a step, so they stay until the backward pass
    fully_shard(network, mesh=mesh["data_parallel"], reshard_after_forward=False)
    return network


def _check(accelerator: str, devices: int, num_nodes: int, strategy: str | None, precision: str) -> None:
    if accelerator not in ACCELERATORS:
        raise unknown("accelerator", accelerator, ACCELERATORS)
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    if strategy is not None and strategy not in STRATEGIES:
        raise unknown("strategy", strategy, STRATEGIES)
    if devices < 1 or num_nodes < 1:
        raise UserError(f"--devices and --num-nodes must be at least 1, got {devices} and {num_nodes}")
    most = max(_MOST_DEVICES, os.cpu_count() or 1)  # every one becomes a process, which may bring the machine down
    if devices > most or num_nodes > _MOST_NODES:
        raise UserError(
            f"--devices must be at most {most} and --num-nodes at most {_MOST_NODES}, got {devices} and {num_nodes}"
        )
    if strategy == "fsdp" and devices * num_nodes == 1:
        raise UserError("--strategy fsdp spreads a model over processes: it needs --devices or --num-nodes above 1")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

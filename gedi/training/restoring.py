"""Whether a saved state fits a trainer: a checkpoint may be whole and yet of another training."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gedi.training.loop import Trainer

State = dict[str, Any]


class Misfit(Exception):
    """What does not fit, in words that go on after the checkpoint's name."""


def refuse_misfit(trainer: "Trainer", state: State) -> None:
    """Raise :class:`Misfit` unless the trainer can go on from the state; nothing is loaded."""
    for name in ("leg", "iteration", "batch_size"):
        _need(type(_of(state, name)) is int and state[name] >= 0, name)
    _need(type(_of(state, "begun")) is bool, "begun")
    _need(state["leg"] <= len(trainer.legs), "leg")
    stage = trainer.legs[state["leg"]].stage if state["leg"] < len(trainer.legs) else None
    _need(state["iteration"] <= (stage.iterations if stage else 0), "iteration")
    _need(state["batch_size"] <= len(trainer.train), "batch_size")
    _branch(trainer, state, "")
    for name in ("trunk", "best"):
        if _of(state, name) is not None:
            _branch(trainer, state[name], f"{name}.")
    for name in ("streams", "root_streams"):
        _streams(trainer, _of(state, name), name)
    for streams in _of(state, "own_streams", list):
        _streams(trainer, streams, "own_streams")
    _batches(trainer, _of(state, "batches", dict))
    _averages(trainer, _of(state, "average", list), bool(stage and state["begun"] and stage.average))
    _walks(trainer, state)
    _need(all(_is(x, ()) for x in _of(state, "tail", list)), "tail")
    _need(all(type(x) is float for x in _of(state, "selection_losses", list)), "selection_losses")
    restart = trainer.legs[state["leg"]].restart if stage else None
    _need(not restart or (state["best"] is not None and len(state["selection_losses"]) >= restart), "best")
    _need(restart is None or not (restart or state["begun"]) or state["trunk"] is not None, "trunk")
    _need(all(type(x) is float for x in _of(state, "seconds", dict).values()), "seconds")
    _guard(trainer, _of(state, "guard", dict))
    _of(state, "precision", dict)


def _need(holds: bool, name: str) -> None:
    if not holds:
        raise Misfit(f"has a wrong {name!r}")


def _of(state: Any, name: str, kind: type | None = None) -> Any:
    if not isinstance(state, dict) or name not in state:
        raise Misfit(f"lacks {name!r}, as another version of gedi may have written it")
    _need(kind is None or isinstance(state[name], kind), name)
    return state[name]


def _is(x: Any, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> bool:
    return isinstance(x, Tensor) and tuple(x.shape) == shape and (dtype is None or x.dtype == dtype)


def _same_form(x: Any, own: dict[str, Tensor], name: str) -> None:
    """As many tensors by the same names, each of the same shape and kind."""
    _need(isinstance(x, dict) and set(x) == set(own), name)
    for key, value in own.items():
        _need(_is(x[key], tuple(value.shape), value.dtype), f"{name}.{key}")


def _branch(trainer: "Trainer", branch: Any, prefix: str) -> None:
    _same_form(_of(branch, "model"), trainer.model.state_dict(), f"{prefix}model")
    chains = trainer.buffer.chains
    shape = (trainer.settings.buffer, *chains.shape[1:])
    _need(_is(_of(branch, "chains"), shape, chains.dtype), f"{prefix}chains")
    optimiser, own = _of(branch, "optimizer", dict), trainer.optimizer.state_dict()
    groups = _of(optimiser, "param_groups", list)
    same = len(groups) == len(own["param_groups"]) and all(
        isinstance(group, dict) and set(group) == set(of_own) and group["params"] == of_own["params"]
        for group, of_own in zip(groups, own["param_groups"], strict=True)
    )
    _need(same, f"{prefix}optimizer")
    parameters = list(trainer.model.parameters())
    for number, moments in _of(optimiser, "state", dict).items():
        _need(type(number) is int and 0 <= number < len(parameters), f"{prefix}optimizer")
        _need(isinstance(moments, dict) and set(moments) == {"step", "exp_avg", "exp_avg_sq"}, f"{prefix}optimizer")
        _need(_is(moments["step"], ()), f"{prefix}optimizer")
        for name in ("exp_avg", "exp_avg_sq"):
            _need(_is(moments[name], tuple(parameters[number].shape), parameters[number].dtype), f"{prefix}optimizer")


def _streams(trainer: "Trainer", streams: Any, name: str) -> None:
    _need(isinstance(streams, dict), name)
    for key, position in streams.items():
        try:
            torch.Generator(trainer.root_streams.device).set_state(position)
        except (TypeError, RuntimeError):
            raise Misfit(f"has a wrong '{name}.{key}'") from None


def _batches(trainer: "Trainer", batches: State) -> None:
    loose = len(trainer.train) - trainer.groups * trainer.group_size
    for order, cursor, n in (("groups", "group_cursor", trainer.groups), ("order", "cursor", loose)):
        x, at = _of(batches, order, Tensor), _of(batches, cursor)
        _need(x.dim() == 1 and x.dtype == torch.long and len(x) in (0, n), f"batches.{order}")
        _need(torch.equal(x.sort().values, torch.arange(len(x))), f"batches.{order}")
        _need(type(at) is int and 0 <= at <= len(x), f"batches.{cursor}")


def _averages(trainer: "Trainer", average: list[Any], needed: bool) -> None:
    parameters = list(trainer.model.parameters())
    _need(len(average) == (len(parameters) if needed else 0), "average")
    _need(all(_is(x, tuple(p.shape), p.dtype) for x, p in zip(average, parameters, strict=False)), "average")


def _walks(trainer: "Trainer", state: State) -> None:
    walker, walked = _of(state, "walker"), _of(state, "walked")
    stage = trainer.legs[state["leg"]].stage if state["leg"] < len(trainer.legs) else None
    if stage is not None and state["begun"]:
        wanted = stage.walk is not None and stage.walk.energy == "stage1"
        _need((walker is not None) == wanted, "walker")
    if walker is not None:
        energy = trainer.model.energy
        _same_form(_of(walker, "encoder"), energy.encoder.state_dict(), "walker.encoder")
        _need(_is(_of(walker, "direction"), tuple(energy.direction.shape)), "walker.direction")
    if walked is not None:
        _need(_is(walked, tuple(trainer.train.shape), trainer.buffer.chains.dtype), "walked")


def _guard(trainer: "Trainer", guard: State) -> None:
    _need(type(_of(guard, "interventions")) is int and guard["interventions"] >= 0, "guard.interventions")
    _need(type(_of(guard, "returned")) is bool, "guard.returned")
    for name in ("beginning", "good"):
        snapshot = _of(guard, name)
        if snapshot is not None:
            _branch(trainer, snapshot, f"guard.{name}.")
            _averages(trainer, _of(snapshot, "average", list), bool(snapshot["average"]))
            for number in ("iteration", "tail"):
                _need(type(_of(snapshot, number)) is int and snapshot[number] >= 0, f"guard.{name}.{number}")
    for values in _of(guard, "seen", dict).values():
        _need(isinstance(values, list) and all(type(x) is float and math.isfinite(x) for x in values), "guard.seen")
    _need(all(type(x) is int for x in _of(guard, "suspicion", dict).values()), "guard.suspicion")

"""Whether a saved state fits a trainer: a checkpoint may be whole and yet of another training."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gedi.training.tree import Tree, joined_form

if TYPE_CHECKING:
    from gedi.training.loop import Trainer
    from gedi.training.stage import Stage

Saved = dict[str, Any]


class Misfit(Exception):
    """What does not fit, in words that go on after the checkpoint's name."""


def refuse_misfit(trainer: "Trainer", state: Saved) -> None:
    """Raise :class:`Misfit` unless the trainer can go on from the state; nothing is loaded."""
    course, moment = _of(state, "course", dict), _of(state, "state", dict)
    _course(trainer, course)
    leg = None if course["at"] == len(trainer.course.legs) else trainer.course.legs[course["at"]]
    stage = None if leg is None else leg.stage
    _moment(trainer, moment, "state", stage if course["begun"] else None)
    _need(moment["iteration"] <= (stage.iterations if stage else 0), "state.iteration")
    for name in ("trunk", "best"):
        if course[name] is not None:
            _moment(trainer, course[name], f"course.{name}")
    if leg is not None and leg.restart is not None:
        tried = len(course["selection_losses"])
        _need(leg.restart == 0 or (course["best"] is not None and tried >= leg.restart), "course.best")
        _need(not (leg.restart or course["begun"]) or course["trunk"] is not None, "course.trunk")
    size = _of(state, "batch_size")
    _need(type(size) is int and 0 < size <= len(trainer.train), "batch_size")
    _streams(trainer, _of(state, "streams", dict))
    _batches(trainer, _of(state, "batches", dict))
    _walks(trainer, _of(state, "walks", dict), stage if course["begun"] else None)
    _guard(trainer, _of(state, "guard", dict))
    _need(all(type(x) is float for x in _of(state, "seconds", dict).values()), "seconds")
    _of(state, "precision", dict)


def _need(holds: bool, name: str) -> None:
    if not holds:
        raise Misfit(f"has a wrong {name!r}")


def _of(state: Any, name: str, kind: type | None = None) -> Any:
    if not isinstance(state, dict) or name not in state:
        raise Misfit(f"lacks {name!r}, as another version of gedi may have written it")
    _need(kind is None or isinstance(state[name], kind), name)
    return state[name]


def _count(state: Saved, name: str, said: str) -> None:
    _need(type(_of(state, name)) is int and state[name] >= 0, said)


def _is(x: Any, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> bool:
    return isinstance(x, Tensor) and tuple(x.shape) == shape and (dtype is None or x.dtype == dtype)


def _same_form(x: Any, own: Tree, name: str) -> None:
    """As many of everything by the same names, tensors of the same shape and kind."""
    if isinstance(own, dict):
        _need(isinstance(x, dict) and set(x) == set(own), name)
        for key, value in own.items():
            _same_form(x[key], value, f"{name}.{key}")
    elif isinstance(own, list):
        _need(isinstance(x, list) and len(x) == len(own), name)
        for value, of_own in zip(x, own, strict=True):
            _same_form(value, of_own, name)
    elif isinstance(own, Tensor):
        _need(_is(x, tuple(own.shape), own.dtype), name)
    else:
        _need(type(x) is type(own), name)


def _course(trainer: "Trainer", course: Saved) -> None:
    _count(course, "at", "course.at")
    _need(course["at"] <= len(trainer.course.legs), "course.at")
    _need(type(_of(course, "begun")) is bool, "course.begun")
    _need(all(type(x) is float for x in _of(course, "selection_losses", list)), "course.selection_losses")
    for name in ("trunk", "best"):
        _of(course, name)


def _moment(trainer: "Trainer", moment: Any, name: str, stage: "Stage | None" = None) -> None:
    """A copy of the training state; ``stage`` is the one it is in the middle of, if any."""
    _same_form(_of(moment, "model"), trainer.model.state_dict(), f"{name}.model")
    _optimiser(trainer, _of(moment, "optimizer", dict), f"{name}.optimizer")
    _same_form(_of(moment, "density"), joined_form(trainer.state.density), f"{name}.density")
    _count(moment, "iteration", f"{name}.iteration")
    _need(all(_is(x, ()) for x in _of(moment, "tail", list)), f"{name}.tail")
    average, parameters = _of(moment, "average", list), list(trainer.model.parameters())
    wanted = {0, len(parameters)} if stage is None else {len(parameters) if stage.average else 0}
    _need(len(average) in wanted, f"{name}.average")
    _need(all(_is(x, tuple(p.shape), p.dtype) for x, p in zip(average, parameters, strict=False)), f"{name}.average")
    carried = _of(moment, "objectives", dict)
    if stage is not None:
        own = {term: joined_form(objective.begin()) for term, objective in stage.terms.items()}
        _same_form(carried, own, f"{name}.objectives")


def _optimiser(trainer: "Trainer", optimiser: Saved, name: str) -> None:
    groups, own = _of(optimiser, "param_groups", list), trainer.optimizer.state_dict()["param_groups"]
    same = len(groups) == len(own) and all(
        isinstance(group, dict) and set(group) == set(of_own) and group["params"] == of_own["params"]
        for group, of_own in zip(groups, own, strict=True)
    )
    _need(same, name)
    parameters = list(trainer.model.parameters())
    for number, moments in _of(optimiser, "state", dict).items():
        _need(type(number) is int and 0 <= number < len(parameters), name)
        _need(isinstance(moments, dict) and set(moments) == {"step", "exp_avg", "exp_avg_sq"}, name)
        _need(_is(moments["step"], ()), name)
        for kind in ("exp_avg", "exp_avg_sq"):
            _need(_is(moments[kind], tuple(parameters[number].shape), parameters[number].dtype), name)


def _streams(trainer: "Trainer", streams: Saved) -> None:
    name = _of(streams, "name")
    _need(name is None or name in [leg.streams for leg in trainer.course.legs], "streams.name")
    for kind in ("root", "shared"):
        _positions(trainer, _of(streams, kind), f"streams.{kind}")
    for one in _of(streams, "own", list):
        _positions(trainer, one, "streams.own")


def _positions(trainer: "Trainer", positions: Any, name: str) -> None:
    _need(isinstance(positions, dict), name)
    for key, position in positions.items():
        try:
            torch.Generator(trainer.streams.shared.device).set_state(position)
        except (TypeError, RuntimeError):
            raise Misfit(f"has a wrong '{name}.{key}'") from None


def _batches(trainer: "Trainer", batches: Saved) -> None:
    loose = len(trainer.train) - trainer.groups * trainer.group_size
    for order, cursor, n in (("groups", "group_cursor", trainer.groups), ("order", "cursor", loose)):
        x, at = _of(batches, order, Tensor), _of(batches, cursor)
        _need(x.dim() == 1 and x.dtype == torch.long and len(x) in (0, n), f"batches.{order}")
        _need(torch.equal(x.sort().values, torch.arange(len(x))), f"batches.{order}")
        _need(type(at) is int and 0 <= at <= len(x), f"batches.{cursor}")


def _walks(trainer: "Trainer", walks: Saved, stage: "Stage | None") -> None:
    frozen, ends = _of(walks, "frozen"), _of(walks, "ends")
    if stage is not None:
        wanted = stage.walk is not None and stage.walk.frozen
        _need((frozen is not None) == wanted, "walks.frozen")
    if frozen is not None:
        own = trainer.model.state_dict()
        _need(isinstance(frozen, dict) and set(frozen) <= set(own), "walks.frozen")
        _same_form(frozen, {name: own[name] for name in frozen}, "walks.frozen")
    if ends is not None:
        _need(_is(ends, tuple(trainer.train.shape), torch.float32), "walks.ends")


def _guard(trainer: "Trainer", guard: Saved) -> None:
    _count(guard, "interventions", "guard.interventions")
    _need(type(_of(guard, "returned")) is bool, "guard.returned")
    for name in ("beginning", "good"):
        if _of(guard, name) is not None:
            _moment(trainer, guard[name], f"guard.{name}")
    for values in _of(guard, "seen", dict).values():
        _need(isinstance(values, list) and all(type(x) is float and math.isfinite(x) for x in values), "guard.seen")
    _need(all(type(x) is int for x in _of(guard, "suspicion", dict).values()), "guard.suspicion")

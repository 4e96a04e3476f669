"""Whether data are still what they were: a fingerprint to keep with a run, and what differs between two of them."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gedi.data.dataset import Dataset
from gedi.data.mapped import mapped
from gedi.data.pixels import StoredImages, chunks
from gedi.data.scaled import ScaledRows
from gedi.data.shards import Shards, spread
from gedi.types import Points

_BYTES = 2**24  # looked at at a time; of shards: altogether
_BLOCK = 2**16  # bytes of a shard looked at together
_ROUNDING = 1e-6  # of the usual size of a value: another machine's sine or mean differs by less, another row by more
_WORDS = {
    "train": "training points",
    "test": "test points",
    "train_labels": "training labels",
    "test_labels": "test labels",
    "validation": "validation points",
}


def fingerprint(data: Dataset) -> dict[str, Any]:
    """What tells data apart from others, as plain data for JSON: shapes, kinds, content, labels, groups.

    What is in memory is read as a whole. Of shards the names, the sizes and some 16 MiB are, spread over all of them
    (and the mean and spread of a table, which every row has a part in). Names and places of data do not count.

    Example:
        >>> both = [fingerprint(Dataset("mine", torch.arange(2.0 * n).view(n, 2), torch.ones(3, 2))) for n in (5, 4)]
        >>> differences(*both)
        ['4 training points instead of 5']
    """
    parts = {name: getattr(data, name) for name in _WORDS}
    return {
        **{name: None if held is None else _print_of(held) for name, held in parts.items()},
        "group_size": data.group_size,
        "groups": data.groups,
        **({} if data.answers is None else {"answers": _print_of_answers(data.answers)}),
    }


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two fingerprints, in words; empty if nothing does.

    Floats that differ by no more than rounding, as those of another machine do, are no difference.

    Args:
        then: the fingerprint that was kept.
        now: the fingerprint of the data there are.
    """
    found = []
    for name, words in _WORDS.items():
        before, after = then.get(name), now.get(name)
        if before is None or after is None:
            if before is not after:
                found.append(f"no {words} any more" if after is None else f"{words} where there were none")
        elif (said := _difference(words, before, after)) is not None:
            found.append(said)
    if then.get("answers") != now.get("answers"):
        found.append("other answers of the groups")
    for name, words in (("group_size", "points in a group"), ("groups", "groups")):
        if then.get(name) != now.get(name):
            found.append(f"{now.get(name)} {words} instead of {then.get(name)}")
    return found


def _difference(words: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    before, after = then.get("shape", [0]), now.get("shape", [0])
    if before[1:] != after[1:]:
        return f"{words} of shape {tuple(after[1:])} instead of {tuple(before[1:])}"
    if before[:1] != after[:1]:
        return f"{after[0]:,} {words} instead of {before[0]:,}"
    if then.get("kind") != now.get("kind"):
        return f"{words} in {now.get('kind')} instead of {then.get('kind')}"
    if then.get("files") != now.get("files"):
        return f"{words} in other files ({_other_file(then.get('files') or [], now.get('files') or [])})"
    same, near = then.get("digest") == now.get("digest"), _is_rounding(then, now)
    # of files only a sample is in the digest, and the sum is of all rows where there is one
    if (same and (near or "sum" not in now)) if "files" in now else (same or near):
        return None
    return f"other {words} of the same number and shape"


def _other_file(then: Sequence[Sequence[Any]], now: Sequence[Sequence[Any]]) -> str:
    """The first file that tells the difference."""
    before, after = ({str(name): size for name, size in files} for files in (then, now))
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            if name not in after:
                return f"{name} is gone"
            return f"{name} is new" if name not in before else f"{name} has {after[name]:,} bytes, not {before[name]:,}"
    return "another order"


def _is_rounding(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the weighted sums are as near to one another as rounding leaves them; where there are none, no."""
    if "sum" not in then or "sum" not in now:
        return False
    return abs(float(then["sum"]) - float(now["sum"])) <= float(now["within"])


def _print_of(points: Points | Tensor) -> dict[str, Any]:
    """Of one part."""
    if isinstance(points, StoredImages):
        made, p = _print_of(points.stored), points.pixels
        scaled = f"(x - {p.mean:g}) / {p.std:g}"
        return made | {"shape": list(points.shape), "kind": f"{made['kind']} with a border of {p.pad}, {scaled}"}
    if isinstance(points, ScaledRows):
        s = points.summary
        figures = np.concatenate([s.mean, np.sqrt(s.squares / s.n), s.low, s.high])
        total = float(_weights(np.random.default_rng(0), len(figures)) @ figures)
        return _print_of(points.stored) | {"sum": total, "within": 1e-9 * float(np.linalg.norm(figures))}
    return _print_of_shards(points) if isinstance(points, Shards) else _print_of_tensor(points[:])


def _print_of_answers(answers: Sequence[Any] | Tensor) -> str:
    """Of what was observed."""
    said = answers.tolist() if isinstance(answers, Tensor) else list(answers)
    return hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest()


def _print_of_tensor(x: Tensor) -> dict[str, Any]:
    digest, total, squares = hashlib.blake2b(digest_size=16), 0.0, 0.0
    width = x[:1].numel()
    rng = np.random.default_rng(0)
    across = torch.from_numpy(_weights(rng, width))
    for part in chunks(x, max(1, _BYTES // max(1, width * x.element_size()))):
        held = part.detach().cpu().contiguous()
        digest.update(held.flatten().view(torch.uint8).numpy().data)
        if held.is_floating_point():  # no two values have one weight, so that values that changed places show
            values = held.double().view(len(held), width)
            total += float(torch.from_numpy(_weights(rng, len(held))) @ (values @ across))
            squares += float(values.square().sum())
    made = {"shape": list(x.shape), "kind": str(x.dtype).removeprefix("torch."), "digest": digest.hexdigest()}
    # errors of rounding are as good as independent: their sum grows with the root of their number
    return made | ({"sum": total, "within": _ROUNDING * math.sqrt(squares)} if x.is_floating_point() else {})


def _weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """None near 0, so that each value counts; of both signs, so that rounding that shifts all values alike does not."""
    weights: np.ndarray = rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)
    return weights


def _print_of_shards(shards: Shards) -> dict[str, Any]:
    """By the bytes of the files: decoding them would take longer, and follows the version of the decoder."""
    digest = hashlib.blake2b(digest_size=16)
    if shards.rows is not None:
        digest.update(shards.rows.cpu().numpy().data)
    ends = np.cumsum([stamp.size for _, stamp in shards.files])
    for place in spread(-(-int(ends[-1]) // _BLOCK), _BYTES // _BLOCK).tolist():
        number = int(np.searchsorted(ends, place * _BLOCK, side="right"))
        path, stamp = shards.files[number]
        start = place * _BLOCK - int(ends[number] - stamp.size)
        digest.update(mapped(path, stamp)[start : start + _BLOCK])
    return {
        "shape": list(shards.shape),
        "kind": str(shards.dtype).removeprefix("torch."),
        "files": [[path.name, stamp.size] for path, stamp in shards.files],
        "digest": digest.hexdigest(),
    }

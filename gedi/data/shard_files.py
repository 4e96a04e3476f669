"""Which files are shards, and which of them are for the test."""

import glob
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gedi.data.split import fifth
from gedi.errors import UserError

_SUFFIXES = (".tar", ".npy")
_COMPRESSED = re.compile(r"\.(tgz|tbz2?|txz|(tar|npy)\.(gz|bz2|xz|zst|lz4))$")
_ROLE = re.compile(r"(train|test)[-_.]")
_LABELS = re.compile(r"((?:train|test)[-_.])?y-(.+)")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_ENOUGH = 5  # shards, from which on whole ones are kept for the test


@dataclass(frozen=True)
class ShardFiles:
    """The files of a sharded set.

    Attributes:
        name: of their folder.
        kind: ``.tar`` or ``.npy``.
        train: training shards, by name.
        test: test shards, by name; empty if rows of the training shards have to be kept for the test.
        labels: the file of labels of a ``.npy`` shard, where there is one.
        how: how the test part was found, in words.
    """

    name: str
    kind: Literal[".tar", ".npy"]
    train: list[Path]
    test: list[Path]
    labels: dict[Path, Path]
    how: str


def find_shards(path: str | Path) -> ShardFiles:
    """The shards of a folder or of a pattern.

    Shards called ``test-...`` are the test part. Without any, a fifth of the shards is, if there are five or more,
    always the same. If shards are called ``train-...``, all must be that or ``test-...``.

    Args:
        path: a folder, or a pattern: ``train-{0000..0127}.tar`` (each must be there), ``{train,test}-*.tar``.
    """
    files = _files(path)
    squeezed = next((file for file in files if _COMPRESSED.search(file.name)), None)
    if squeezed is not None:
        raise UserError(
            f"shards must not be compressed as a whole, got {str(squeezed)!r}: nothing could be read from the middle; "
            "unpack it to .tar or .npy (images stay compressed inside)"
        )
    files = [file for file in files if file.suffix in _SUFFIXES]
    kinds = {file.suffix for file in files}
    if len(kinds) != 1:
        got = "both" if kinds else "none"
        raise UserError(f"data.path={str(path)!r} must give shards, all .tar or all .npy, but gives {got}")
    kind: Literal[".tar", ".npy"] = ".tar" if kinds == {".tar"} else ".npy"
    labels = {file: match for file in files if kind == ".npy" and (match := _LABELS.fullmatch(file.name))}
    rows = [file for file in files if file not in labels]
    beside = {}
    for file, match in labels.items():
        owner = file.with_name(f"{match[1] or ''}x-{match[2]}")
        if owner not in rows:
            raise UserError(f"{str(file)!r} holds labels, so {owner.name!r} must be there beside it, but is not")
        beside[owner] = file
    if not rows:
        raise UserError(f"data.path={str(path)!r} must give shards of rows, but gives labels alone")
    train, test, how = _split(rows)
    return ShardFiles(rows[0].resolve().parent.name, kind, train, test, beside, how)


def _files(path: str | Path) -> list[Path]:
    """Files of a folder or pattern, by name; hidden ones are none."""
    folder = Path(path).expanduser()
    if folder.is_dir():
        found = list(folder.iterdir())
    else:
        found = []
        for pattern in _expanded(str(folder)):
            some = [Path(name) for name in glob.glob(pattern)]
            if not some:
                raise UserError(f"data.path must name a folder of shards or a pattern, but {pattern!r} is not there")
            found += some
    return sorted({file for file in found if file.is_file() and not file.name.startswith(".")})


def _expanded(pattern: str) -> Iterator[str]:
    """A pattern without its braces: ``{00..12}`` counts, ``{a,b}`` chooses.

    Example:
        >>> list(_expanded("{a,b}-{08..10}.tar"))
        ['a-08.tar', 'a-09.tar', 'a-10.tar', 'b-08.tar', 'b-09.tar', 'b-10.tar']
    """
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        yield pattern
        return
    choices: Iterable[str] = braces[1].split(",")
    if (ends := _RANGE.fullmatch(braces[1])) is not None:
        choices = (f"{number:0{len(ends[1])}}" for number in range(int(ends[1]), int(ends[2]) + 1))
    for choice in choices:
        yield from _expanded(pattern[: braces.start()] + choice + pattern[braces.end() :])


def _split(rows: list[Path]) -> tuple[list[Path], list[Path], str]:
    """Training shards, test shards, and how they were told apart."""
    roles = [match[1] if (match := _ROLE.match(file.name)) else None for file in rows]
    train = [file for file, role in zip(rows, roles, strict=True) if role != "test"]
    test = [file for file, role in zip(rows, roles, strict=True) if role == "test"]
    other = next((file for file, role in zip(rows, roles, strict=True) if role is None), None)
    if "train" in roles and other is not None:
        raise UserError(
            f"where shards are called train-..., all must be that or test-..., but {str(other)!r} is there too; "
            "take it away, or give a pattern such as {train,test}-*.tar"
        )
    if not train:
        raise UserError(f"there must be shards to train on, but all are called test-... ({str(test[0])!r})")
    if test:
        return train, test, "its own split"
    if len(train) < _ENOUGH:
        return train, [], "a fifth for the test"
    kept, held = fifth(len(train))
    return [train[i] for i in kept], [train[i] for i in held], "a fifth of the shards for the test"

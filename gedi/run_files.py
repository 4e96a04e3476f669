"""Files of a run, read with suspicion: whatever is wrong with one becomes a line that says what to do."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from gedi.checkpoints import write_whole
from gedi.errors import UserError

Record = dict[str, Any]
_Number = StrictInt | StrictFloat
_Finite = Annotated[_Number, Field(allow_inf_nan=False)]
_LARGEST = 1e300  # of a figure; what is no number is not below it
_COPY = "put back a copy, or run it again with --overwrite"
_AGAIN = "gedi run --resume writes it again"


class _Held(BaseModel):
    """What a file must hold; more may stand beside it."""

    model_config = ConfigDict(frozen=True, extra="allow")


class _Print(_Held):
    shape: list[StrictInt]
    kind: StrictStr
    digest: StrictStr
    files: list[tuple[StrictStr, StrictInt]] | None = None
    sum: _Finite = 0
    within: _Finite = 0


class Fingerprint(_Held):
    """``data.json``: what tells the data apart from others."""

    train: _Print
    test: _Print
    train_labels: _Print | None
    test_labels: _Print | None
    validation: _Print | None
    group_size: StrictInt
    groups: StrictInt


class _Tries(_Held):
    selection_losses: list[_Number]
    chosen: StrictInt | None


class Results(_Held):
    """``results.json``."""

    preset: StrictStr
    method: StrictStr
    seed: StrictInt
    data: StrictStr
    metrics: dict[StrictStr, _Number]
    density: Record | None
    restarts: _Tries
    seconds: dict[StrictStr, _Number]
    versions: dict[StrictStr, StrictStr]
    fingerprint: Fingerprint | None = None  # runs of 0.1.0 keep neither this nor checksums
    checksums: dict[StrictStr, StrictStr] = {}


class _Axes(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    axes: list[list[_Finite]]
    beyond: _Finite
    size: Annotated[_Finite, Field(gt=0)]


class _Rows(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    centre: list[_Finite] | None
    spread: Annotated[_Finite, Field(gt=0)] | list[Annotated[_Finite, Field(gt=0)]]  # of all columns, or of each
    length: Annotated[_Finite, Field(gt=0)] | None = None  # that rows are brought to
    projection: _Axes | None = None  # of wide rows onto fewer axes


class _Images(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    pad: Annotated[StrictInt, Field(ge=0)]
    channels: Annotated[StrictInt, Field(gt=0)] | None
    mean: _Finite
    std: Annotated[_Finite, Field(gt=0)]


class Shape(_Held):
    """``model/config.json``: what it takes to build the network again."""

    shape: Annotated[list[Annotated[StrictInt, Field(gt=0)]], Field(min_length=1)]
    clusters: Annotated[StrictInt, Field(gt=0)]
    low: list[Any]
    high: list[Any]
    inputs: _Rows | _Images | None = None  # what makes points of what is given; runs of 0.1.0 keep none
    config: Record
    own_encoder: StrictBool = False
    checksum: StrictStr | None = None  # of the weights; runs of 0.1.0 keep none


class Line(_Held):
    """A line of ``metrics.jsonl``."""

    stage: StrictStr
    iteration: StrictInt
    restart: StrictInt = 0
    event: StrictStr | None = None


class Evaluation(_Held):
    """``evaluation.json``."""

    probe: Record | None = None
    fid: Record | None = None
    ood: dict[StrictStr, dict[StrictStr, Any]] = {}
    checksums: dict[StrictStr, StrictStr] = {}


def read_json(path: Path, kind: type[BaseModel], cure: str = _AGAIN) -> Record:
    """A record that holds what its kind of file must hold."""
    try:
        record = json.loads(path.read_bytes())
        kind.model_validate(record)
    except (OSError, ValueError, RecursionError) as error:
        refuse(path, _reason(error), cure)
    found: Record = record
    return found


def read_lines(path: Path, keep: int | None = None) -> list[Record]:
    """The records of a log, or the first ``keep``; a last line that a kill cut short, or is being written, is none."""
    if not path.is_file():
        return []
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        refuse(path, _reason(error), "get permission")
    return [_line(path, number, line) for number, line in enumerate(lines[:keep], start=1)]


def check_lines(path: Path, keep: int) -> None:
    """So many lines, those logged before a checkpoint, must be there."""
    there = len(read_lines(path, keep))
    if there < keep:
        refuse(path, f"of {keep} lines {there} are left", "put back a copy, or start anew with --overwrite")


def trim_lines(path: Path, keep: int) -> None:
    """Forget lines logged after the checkpoint that a resumed run starts from; the last may be cut short."""
    lines = path.read_bytes().splitlines(keepends=True)[:keep] if keep else []
    write_whole(path, b"".join(lines))


def read_tensors(path: Path, checksum: str | None = None, cure: str = _AGAIN) -> dict[str, Tensor]:
    """Tensors as they were written, by their checksum; where none was kept, as they are."""
    try:
        content = path.read_bytes()
        if checksum is not None and checksum_of(content) != checksum:
            refuse(path, "its checksum is not the one kept", cure)
        tensors: dict[str, Tensor] = load(content)
        return tensors
    except (OSError, SafetensorError, ValueError, KeyError, OverflowError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        refuse(path, _reason(error), cure)


def checksum_of(content: bytes) -> str:
    """BLAKE2b, as it is kept in the files beside."""
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def refuse(path: Path, reason: str, cure: str = _AGAIN) -> NoReturn:
    """A file of a run cannot be used."""
    raise UserError(f"{str(path)!r} cannot be used: {reason}; {cure}") from None


def _line(path: Path, number: int, line: bytes) -> Record:
    try:
        record: Record = json.loads(line)
        held = Line.model_validate(record)
    except (ValueError, RecursionError) as error:
        refuse(path, f"line {number}: {_reason(error)}", _COPY)
    for name, value in record.items() if held.event is None else ():
        known = name in Line.model_fields
        if not known and (type(value) not in (int, float) or not abs(value) < _LARGEST):
            refuse(path, f"line {number}: {name[:40]!r} is no number", _COPY)
    if held.event is not None and ("cause" if held.event == "guard" else "prototypes") not in record:
        refuse(path, f"line {number}: it does not say what happened", _COPY)
    return record


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part)[:40] for part in first["loc"])
        said = "is missing" if first["type"] == "missing" else first["msg"].replace("Input should be", "must be")
        return f"{where} {said}" if where else "it must hold names and values"
    if isinstance(error, FileNotFoundError):
        return "it is not there"
    if isinstance(error, OSError):
        return str(error.strerror or error)
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        return "it is no JSON"
    return (str(error).splitlines() or [type(error).__name__])[0]

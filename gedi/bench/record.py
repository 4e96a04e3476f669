"""What a benchmark leaves behind: ``bench.json``, with the machine and the versions it was measured with."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gedi.bench.findings import Figure, Finding, Growth, LeftOut, Ratio
from gedi.checkpoints import write_whole
from gedi.errors import UserError
from gedi.runs import versions

FILE = "bench.json"
_PEERS = ("torchebm", "deepproblog", "klaycircuits")
_KINDS: dict[str, type[Any]] = {"ratios": Ratio, "growth": Growth, "figures": Figure, "left_out": LeftOut}


@dataclass(frozen=True)
class Record:
    """Findings by subject, where they were made, and with what."""

    findings: Mapping[str, Sequence[Finding]]
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    quick: bool

    def of(self, kind: type[Any]) -> list[tuple[str, Any]]:
        """Findings of one kind, each with its subject."""
        return [(subject, found) for subject, many in self.findings.items() for found in many if type(found) is kind]

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return {
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "quick": self.quick,
            **{name: [{"subject": s, **_rounded(asdict(f))} for s, f in self.of(k)] for name, k in _KINDS.items()},
        }

    def write(self, folder: Path) -> Path:
        """Into ``bench.json`` of a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        write_whole(path, (json.dumps(self.to_json(), indent=2) + "\n").encode())
        return path


def record(findings: Mapping[str, Sequence[Finding]], *, quick: bool) -> Record:
    """Findings together with this machine and what is installed on it."""
    peers = {name: found for name in _PEERS if (found := _version(name)) is not None}
    return Record(findings, machine(), {**versions(), **peers}, quick)


def read(folder: Path) -> Record:
    """The record that a folder holds."""
    path = folder / FILE
    if not path.is_file():
        raise UserError(f"a benchmark must have been recorded, but there is no {str(path)!r}; run: gedi bench")
    try:
        return _from_json(json.loads(path.read_text()))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{str(path)!r} must be as gedi bench wrote it, but is not ({type(error).__name__}: {error}); remove it"
        ) from None


def _from_json(plain: dict[str, Any]) -> Record:
    findings: dict[str, list[Finding]] = {}
    for name, kind in _KINDS.items():
        for row in plain[name]:
            fields: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
            }
            findings.setdefault(fields.pop("subject"), []).append(kind(**fields))
    return Record(findings, plain["machine"], plain["versions"], plain["quick"])


def measured_before(folder: Path, *, quick: bool) -> dict[str, list[Finding]]:
    """What a folder holds already by subject, if it was measured on this machine, with these versions and as long."""
    if not (folder / FILE).is_file():
        return {}
    old, now = read(folder), record({}, quick=quick)
    alike = (old.machine, old.versions, old.quick) == (now.machine, now.versions, now.quick)
    return {subject: list(findings) for subject, findings in old.findings.items()} if alike else {}


def machine() -> dict[str, Any]:
    """Processor, cores, memory, and the threads torch was given."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": platform.system(),
        "threads": torch.get_num_threads(),
    }


def _processor() -> str:
    """The processor's own name where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _rounded(value: Any) -> Any:
    """Four digits: more would be noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value

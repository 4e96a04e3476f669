"""Imports point one way: base <- rooms <- training <- methods, presets <- the faces."""

import ast
from pathlib import Path

import pytest

import gedi

PACKAGE = Path(gedi.__file__).parent
LAYERS = {
    "types": 0, "random": 0, "errors": 0, "names": 0, "precision": 0, "memory": 0.5, "yaml_text": 0.5, "ending": 0.5,
    "score": 0.5, "processes": 0.5,
    "logic": 1, "nn": 1, "losses": 1, "sampling": 1, "views": 1, "data": 1, "evaluation": 1,
    "training": 2,
    "devices": 2.5, "config": 3, "methods": 4, "presets": 4, "rules": 4, "sources": 4, "footprint": 4, "parts": 4.5,
    "assess": 5, "judge": 5, "checkpoints": 5.5, "run_files": 5.5, "loggers": 5.5, "runs": 6, "threads": 6.5,
    "examine": 6.5, "report": 7, "completion": 7, "tables": 8, "bench": 8, "cli": 9, "__main__": 10,
}  # fmt: skip


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gedi":
            if node.module == "gedi":
                yield from (alias.name for alias in node.names if alias.name != "__version__")
            else:
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("gedi."))


FILES = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for other in imports_of(path):
        if other != room:
            assert LAYERS[other] < LAYERS[room], f"{room} must not import {other}"


def test_every_room_has_a_place():
    rooms = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert rooms - {"__init__", "__pycache__"} == set(LAYERS)

"""Imports point one way: base <- rooms <- objectives, densities, moves <- training <- config, methods <- the faces."""

import ast
import importlib.util
from pathlib import Path

import pytest

import gedi

PACKAGE = Path(gedi.__file__).parent
#: A room may import those of a lower number, and none of its own.
LAYERS = {
    # the base
    "types": 0, "random": 0, "errors": 0, "names": 0, "precision": 0, "settings": 0,
    "memory": 0.5, "yaml_text": 0.5, "ending": 0.5, "score": 0.5, "processes": 0.5, "parts": 0.5, "renamed": 0.5,
    "loggers": 0.5, "checkpoints": 0.5, "run_files": 0.7, "claims": 0.7,
    # rooms
    "logic": 1, "nn": 1, "losses": 1, "sampling": 1, "views": 1, "data": 1, "evaluation": 1, "presets": 1, "graph": 1,
    # parts that settings name
    "objectives": 2, "densities": 2, "moves": 2.5,
    "training": 3,
    # settings become data, a model and its stages
    "devices": 3.5, "config": 4, "methods": 5, "building": 5, "rules": 5, "few_labels": 5, "sources": 5, "footprint": 5,
    "proposing": 5, "trained": 5.5,
    "measures": 6, "judge": 6, "measuring": 6.5,
    # what every face stands on
    "fitted": 7, "in_memory": 7.2, "naming": 7.2, "pacing": 7.2, "fitting": 7.5, "warm": 7.7, "usual": 7.7,
    "answers": 7.8,
    # faces
    "frames": 0.5, "verdicts": 0.5, "features": 0.6, "refused": 0.6, "given": 0.7, "choosing": 5,
    "directory": 8, "runs": 8.5, "threads": 8.5, "evaluating": 8.5, "report": 9, "completion": 9,
    "estimating": 9.5, "sharing": 9.5, "running": 9.5, "estimator": 9.7,
    "verbs": 10, "tables": 10, "bench": 10, "cli": 11, "__main__": 12,
}  # fmt: skip
FILES = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def upwards(path, source):
    """Rooms that a file, named as seen from the package, imports and must not."""
    own = path.parts[0].removesuffix(".py")
    found = {room_of(name) for name in imported(ast.parse(source), ".".join(["gedi", *path.parts[:-1]]))}
    return sorted(other for other in found - {None, own} if LAYERS[other] >= LAYERS[own])


def room_of(dotted):
    """The room that a name such as ``gedi.nn.mlp`` leads to; None for what is in no room, as the version."""
    _, first, *_ = dotted.split(".")
    if first in LAYERS:
        return first
    holder = getattr(getattr(gedi, first), "__module__", "")  # a function or class that the package shows
    return holder.split(".")[1] if holder.startswith("gedi.") else None


def imported(tree, package):
    """Dotted names of all of this project that a text in a package imports, however it is written."""
    nodes = list(ast.walk(tree))
    ours = {name for node in nodes if isinstance(node, ast.Import) for name in names_of_the_package(node)}
    loaders = {"import_module", "__import__"} | {name for node in nodes for name in renamed_loaders(node)}
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("gedi."))
        elif isinstance(node, ast.ImportFrom):
            yield from imported_from(node, package)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours:
            yield f"gedi.{node.attr}"
        elif isinstance(node, ast.Call) and called(node) in loaders:
            yield from loaded(node, package)


def names_of_the_package(node):
    """What ``import gedi``, ``import gedi.nn`` or ``import gedi as g`` call the package itself."""
    for alias in node.names:
        if alias.name == "gedi" or (alias.name.startswith("gedi.") and alias.asname is None):
            yield alias.asname or "gedi"


def imported_from(node, package):
    base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    if base == "gedi":
        yield from (f"gedi.{alias.name}" for alias in node.names)
    elif base.startswith("gedi."):
        yield base


def renamed_loaders(node):
    if isinstance(node, ast.ImportFrom) and node.module == "importlib":
        yield from (alias.asname for alias in node.names if alias.name == "import_module" and alias.asname)


def called(node):
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def loaded(node, package):
    """The module in ``import_module("...")`` or ``__import__("...")``; a name that is made up there is not known."""
    given = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "name")]
    anchors = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "package")]
    texts = [x.value for x in given if isinstance(x, ast.Constant) and isinstance(x.value, str)]
    where = next((x.value for x in anchors if isinstance(x, ast.Constant) and isinstance(x.value, str)), package)
    for text in texts:
        name = importlib.util.resolve_name(text, where)
        if name.startswith("gedi."):
            yield name


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_one_way(path):
    assert upwards(path, (PACKAGE / path).read_text()) == []


def test_every_room_has_a_place():
    rooms = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert rooms - {"__init__", "__pycache__"} == set(LAYERS)


@pytest.mark.parametrize(
    "source",
    [
        "from gedi.runs import execute",
        "from gedi import runs",
        "from gedi import errors, runs as r",
        "import gedi.runs",
        "import gedi.runs as r",
        "import os, gedi.runs",
        "def late():\n    from gedi.runs import execute",
        # relative
        "from .. import runs",
        "from .. import errors, runs as r",
        "from ..runs import execute",
        "from ..runs.deeper import execute",
        # by an attribute of the package
        "import gedi\ngedi.runs.execute()",
        "import gedi as g\nprepare = g.runs.execute",
        "import gedi\ndef late(run=gedi.runs): return run",
        "import gedi.errors\ngedi.runs.execute()",
        # by a name
        "import importlib\nimportlib.import_module('gedi.runs')",
        "import importlib as i\ni.import_module(name='gedi.runs')",
        "from importlib import import_module\nimport_module('gedi.runs')",
        "from importlib import import_module as load\nload('gedi.runs')",
        "from importlib import import_module\nimport_module('..runs', __package__)",
        "from importlib import import_module\nimport_module('.runs', package='gedi')",
        "__import__('gedi.runs')",
        "import builtins\nbuiltins.__import__('gedi.runs')",
    ],
)
def test_an_import_from_above_is_seen_however_it_is_written(source):
    assert upwards(Path("losses", "mine.py"), source) == ["runs"]


def test_a_function_that_the_package_shows_is_of_the_room_that_defines_it():
    assert upwards(Path("losses", "mine.py"), "from gedi import Fitted, fit") == ["fitted", "fitting"]
    assert upwards(Path("losses", "mine.py"), "import gedi\ngedi.fit([], {})") == ["fitting"]


def test_rooms_of_one_layer_do_not_import_one_another():
    assert upwards(Path("losses", "mine.py"), "from gedi.nn import MLP\nfrom .. import views") == ["nn", "views"]
    assert upwards(Path("objectives", "mine.py"), "from ..densities.energy import EnergyDensity") == ["densities"]
    assert upwards(Path("config.py"), "from . import building\nfrom .methods import METHODS") == ["building", "methods"]


@pytest.mark.parametrize(
    "source",
    [
        "from gedi import __version__",
        "from gedi.errors import UserError\nimport gedi.types",
        "from ..errors import UserError\nfrom .. import types",
        "import gedi\nraise gedi.errors.UserError(gedi.__version__)",
        "import importlib\nimportlib.import_module('gedi.errors')",
        # its own room
        "from . import cluster\nfrom .cluster import log_sinkhorn\nfrom gedi.losses.cluster import log_sinkhorn",
        "from gedi import losses\nimport gedi.losses",
        # no import at all
        "'''from gedi.runs import execute'''\n# import gedi.runs",
        "runs = 'gedi.runs'\nself.gedi.runs()",
        "import gedious.runs\nfrom gedious import runs\nimport gedi.errors as gedious\ngedious.runs",
        "from importlib import import_module\nimport_module('runs')\nimport_module(name_of_it)\nimport_module(1)",
    ],
)
def test_what_lies_below_or_is_no_import_is_left_alone(source):
    assert upwards(Path("losses", "mine.py"), source) == []


def test_a_relative_import_is_resolved_from_where_the_file_lies():
    assert upwards(Path("losses", "__init__.py"), "from . import runs") == []  # a file of its own room
    assert upwards(Path("errors.py"), "from . import runs\nfrom .cli import main") == ["cli", "runs"]
    assert upwards(Path("losses", "deep", "mine.py"), "from ... import runs\nfrom ..cluster import x") == ["runs"]

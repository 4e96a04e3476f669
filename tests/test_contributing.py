"""CONTRIBUTING's "Add a loss", followed to the letter in a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gedi

ROOT = Path(gedi.__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
SHORT = ("data.n_train=200", "data.n_test=50", "stage1.iterations=10", "stage2.iterations=10", "log_every=5")
SHORT += ("walk.steps=2", "n_init=1", "density.buffer=200")


def files_of(section: str) -> dict[str, str]:
    """The files that a section of the page shows, each after its name."""
    text = PAGE.read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"`([\w/]+\.py)`:[^\n]*\n```python\n(.*?)```", text, re.S))


@pytest.fixture
def copy(tmp_path):
    """A copy of the package with the files that the page adds."""
    shutil.copytree(ROOT / "gedi", tmp_path / "gedi", ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in files_of("Add a loss").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def run(copy, *words):
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    return subprocess.run(
        [sys.executable, *words], cwd=copy, env=environment, capture_output=True, text=True, timeout=300
    )


def test_one_file_and_its_test_add_a_loss(copy):
    assert sorted(files_of("Add a loss")) == ["gedi/objectives/variance.py", "tests/objectives/test_variance.py"]
    tested = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/objectives/test_variance.py")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    settings = [word for setting in SHORT for word in ("--set", setting)]
    weight = ["--set", "stage2.terms.variance.weight=0.1"]
    trained = run(copy, "-m", "gedi", "run", "circles", "--out", "run", *settings, *weight)
    assert trained.returncode == 0, trained.stderr
    lines = [json.loads(line) for line in (copy / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(line["variance"] >= 0 for line in lines if line["stage"] == "stage2")
    assert "variance:" in (copy / "run" / "config.yaml").read_text()


def test_without_the_file_there_is_no_such_loss(tmp_path):
    refused = run(tmp_path, "-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); from gedi.cli import main; main()",
                  str(ROOT), "run", "circles", "--set", "stage2.terms.variance.weight=0.1")  # fmt: skip
    assert refused.returncode == 2
    assert "unknown objective 'variance'" in refused.stderr


def test_a_part_from_elsewhere_trains_by_its_import_path(tmp_path):
    words = [word for setting in SHORT for word in ("--set", setting)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'examples'}"}

    def gedi_(*args):
        command = [sys.executable, "-m", "gedi", *args]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    whole = ["run", "circles", *words, "--set", "stage2.terms.my_package.MyLoss.weight=0.1"]
    ended = gedi_(*whole, "--out", "run")
    assert ended.returncode == 0, ended.stderr
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all("my_package.MyLoss" in line for line in logged if line["stage"] == "stage2")
    # a file's word is not enough to run code: whoever reads it must say so
    for command in (["report", "run"], ["run", "run/config.yaml", "--out", "again"]):
        refused = gedi_(*command)
        assert refused.returncode == 2
        assert "code from elsewhere" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
        allowed = gedi_(*command, "--allow", "my_package")
        assert allowed.returncode == 0, allowed.stderr
    model = "model/model.safetensors"
    assert (tmp_path / "again" / model).read_bytes() == (tmp_path / "run" / model).read_bytes()

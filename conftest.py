"""Tests and doctests never touch the user's own caches, and runs say nothing of their progress unless asked to."""

import os

import pytest

os.environ["GEDI_QUIET"] = "1"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE", str(tmp_path / "circuits"))
    monkeypatch.setenv("GEDI_CACHE_DATA", str(tmp_path / "decoded"))

"""Tests and doctests never touch the user's own caches, take one core, and say nothing of their progress."""

import os

import pytest

os.environ["GEDI_QUIET"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"  # before anything imports torch; programs that tests start inherit it


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE", str(tmp_path / "circuits"))
    monkeypatch.setenv("GEDI_CACHE_DATA", str(tmp_path / "decoded"))

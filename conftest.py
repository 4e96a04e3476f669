"""Tests and doctests never touch the user's own caches of circuits and decoded images."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE", str(tmp_path / "circuits"))
    monkeypatch.setenv("GEDI_CACHE_DATA", str(tmp_path / "decoded"))

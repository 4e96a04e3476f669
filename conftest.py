"""Tests and doctests never touch the user's own cache of circuits."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE", str(tmp_path / "circuits"))

"""Every test starts from the same place: one thread, one seed, no examples kept from other runs."""

import sys
from collections.abc import Callable

import hypothesis
import pytest
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None, max_examples=40)
hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def seeded() -> Callable[[int], torch.Generator]:
    """A generator from a seed: ``seeded(3)``."""
    return lambda seed: torch.Generator().manual_seed(seed)


@pytest.fixture
def g() -> torch.Generator:
    """The generator of a test that needs only one."""
    return torch.Generator().manual_seed(0)


@pytest.fixture
def gedi(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The program: ``gedi("run", "circles")`` gives its exit code and what it said on both streams."""

    def run(*args: object) -> tuple[int, str, str]:
        from gedi import cli

        monkeypatch.setattr(sys, "argv", ["gedi", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run

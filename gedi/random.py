"""One seed, many named random streams.

Each consumer draws from a stream of its own, so adding a term to the training shifts nobody
else's draws, and a run is the same, bit for bit, for the same seed on one machine.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor


def derive_seed(seed: int, name: str) -> int:
    """A 63-bit seed that depends on both arguments and on nothing else."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Streams:
    """Named generators derived from one seed, made when first asked for.

    Example:
        >>> a, b = Streams(0), Streams(0)
        >>> _ = torch.rand(5, generator=a["walk"])      # another stream's draws do not matter
        >>> bool(torch.rand(1, generator=a["batch"]) == torch.rand(1, generator=b["batch"]))
        True
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.seed = seed
        self.device = torch.device(device)
        self._generators: dict[str, torch.Generator] = {}

    def __getitem__(self, name: str) -> torch.Generator:
        if name not in self._generators:
            generator = torch.Generator(self.device)
            generator.manual_seed(derive_seed(self.seed, name))
            self._generators[name] = generator
        return self._generators[name]

    def child(self, name: str) -> "Streams":
        """Streams of their own for a part of the run, such as one restart."""
        return Streams(derive_seed(self.seed, name), self.device)

    def numpy(self, name: str) -> np.random.Generator:
        """A NumPy generator, for data that are drawn once."""
        return np.random.default_rng(derive_seed(self.seed, name))

    def state_dict(self) -> dict[str, Tensor]:
        """The position of every stream used so far."""
        return {name: generator.get_state() for name, generator in self._generators.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Put every stream back where it stood; streams not named start afresh."""
        self._generators.clear()
        for name, position in state.items():
            self[name].set_state(position)

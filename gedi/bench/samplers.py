"""Our Langevin sampler against JEM's loop and torchebm's sampler: same energy, chains, moves and numbers."""

import importlib.util
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from gedi.bench import textbook
from gedi.bench.findings import Finding, LeftOut, speedup
from gedi.bench.timing import Effort, in_turns
from gedi.bench.workloads import energy_settings
from gedi.building import build_model
from gedi.config import override, parse
from gedi.nn import Energy
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import Langevin
from gedi.score import score

Sampler = Callable[[Tensor, torch.Generator], Tensor]


def samplers(effort: Effort) -> Iterator[Finding]:
    """SGLD, and one score, on the toy network, a small convolutional one and the paper's."""
    cases: list[tuple[str, Energy, Langevin, Tensor]] = [
        ("MLP of the toy recipe", *_case("circles", (2,), 128, 20, noise=0.08)),
        ("conv of mnist", *_case("mnist-energy", (1, 28, 28), 32, 10)),
        ("resnet8, F = 32", *_case("cifar10-paper", (3, 32, 32), *((16, 5) if effort.small else (64, 20)))),
    ]
    for name, energy, langevin, x in cases:
        ours = ours_on(energy, langevin)
        peers: dict[str, Sampler] = {"JEM's loop": jem_on(energy, langevin)}
        if x.dim() == 4:
            plain = Energy(textbook.plain_encoder(energy.encoder), energy.direction)
            peers["JEM's loop, network in the default layout"] = jem_on(plain, langevin)
        if importlib.util.find_spec("torchebm") is None:
            yield LeftOut(f"SGLD, {name}, against torchebm", "not installed: pip install --no-deps torchebm")
        else:
            peers["torchebm"] = torchebm_on(energy, langevin)
            if hasattr(energy.encoder, "along"):
                peers["torchebm with our score"] = torchebm_on(energy, langevin, our_score=True)
        generator = torch.Generator().manual_seed(0)
        turns = in_turns({who: partial(run, x, generator) for who, run in {"ours": ours, **peers}.items()}, effort)
        work = f"SGLD, {name}, {len(x)} chains, {langevin.steps} moves"
        for who in peers:
            yield speedup(turns, work, (who, who), "ours", at_least=1.0)
        turns = in_turns({"ours": partial(score, energy, x), "all": _all_gradients(energy, x)}, effort)
        yield speedup(turns, f"score, {name}, {len(x)} points", ("backward pass with the parameters'", "all"), "ours")


def ours_on(energy: Energy, langevin: Langevin) -> Sampler:
    """Our sampler as a function of where chains begin."""
    return lambda x, generator: langevin.run(energy, x, generator)[0]


def jem_on(energy: Energy, langevin: Langevin) -> Sampler:
    """JEM's loop; it draws from torch's own stream."""
    return lambda x, generator: textbook.jem_sgld(
        energy, x, steps=langevin.steps, step_size=langevin.alpha, noise=langevin.noise
    )


def torchebm_on(energy: Energy, langevin: Langevin, *, our_score: bool = False) -> Sampler:
    """torchebm's sampler on our energy, by its own gradient or by our score.

    Its noise is ``noise_scale * sqrt(2 step_size)``, so ``noise_scale`` is the root of our temperature.
    """
    from torchebm.core import BaseModel
    from torchebm.samplers import LangevinDynamics

    class OnOurEnergy(BaseModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(dtype=energy.direction.dtype)
            self.encoder = energy.encoder

        def forward(self, x: Tensor) -> Tensor:
            return energy(x)

    class WithOurScore(OnOurEnergy):
        def gradient(self, x: Tensor) -> Tensor:
            return -score(energy, x)

    theirs = LangevinDynamics(
        WithOurScore() if our_score else OnOurEnergy(),
        step_size=langevin.alpha,
        noise_scale=math.sqrt(langevin.temperature),
        dtype=energy.direction.dtype,
    )

    def sample(x: Tensor, generator: torch.Generator) -> Tensor:
        end: Tensor = theirs.sample(x, n_steps=langevin.steps, generator=generator)
        return end

    return sample


def _all_gradients(energy: Energy, x: Tensor) -> Callable[[], None]:
    """The score by a backward pass that makes the parameters' gradients as well: what sampling must not pay for."""
    parameters = [*energy.encoder.parameters(), energy.direction]

    def backward() -> None:
        for parameter in parameters:
            parameter.grad = None
        energy(x.clone().requires_grad_()).sum().backward()  # type: ignore[no-untyped-call]

    return backward


def _case(
    name: str, shape: tuple[int, ...], chains: int, moves: int, noise: float = 0.01
) -> tuple[Energy, Langevin, Tensor]:
    """The energy of a preset, its sampler without the Metropolis step, and where chains begin."""
    settings = ["model.clusters=10", *(["model.width=32"] if name == "cifar10-paper" else [])]
    config = parse(override(preset(name), settings))
    model = build_model(config, shape, 10, Streams(0))
    langevin = Langevin(noise=noise, step_size=energy_settings(config).step_size, steps=moves)
    return model.energy, langevin, torch.rand(chains, *shape, generator=torch.Generator().manual_seed(0))

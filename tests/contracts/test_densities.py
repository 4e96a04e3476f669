"""What every kind of density must do, in training and afterwards; the files of the room are the list."""

import copy
import math

import pytest
import torch

from gedi.config import override, parse
from gedi.densities.density import Density, Place
from gedi.errors import UserError
from gedi.evaluation import mmd_test
from gedi.fitted import Fitted
from gedi.fitting import prepare, train
from gedi.nn.autoencoder import Autoencoder
from gedi.nn.flow import Flow
from gedi.nn.pixels import PixelNet
from gedi.parts import kinds
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import Box
from gedi.score import score

KINDS = kinds("gedi.densities", Density)
#: What a kind needs beside its name.
NEEDS = {
    "kernel": ("density.points=200",),
    "jem": ("model.head=linear", "density.buffer=300"),
    "energy": ("density.buffer=300",),
    "contrastive": ("density.buffer=300",),
    "energy-matching": ("density.buffer=300", "density.warmup=4"),
    "flow": ("density.hidden=[8]", "density.transforms=2"),
    "autoregressive": ("density.hidden=[8]", "density.transforms=2"),
    "vae": ("density.width=8", "density.code=3"),
    "denoiser": ("density.features=4",),
}
TINY = (
    "data.n_train=300", "data.n_test=50", "stage1.iterations=8", "stage2.iterations=8", "walk.steps=3", "n_init=1",
    "log_every=4",
)  # fmt: skip
SHARED = "denoiser, shared encoder"
ENERGIES = [*(kind for kind in KINDS if kind != "none"), SHARED]


def class_of(kind):
    return KINDS["denoiser" if kind == SHARED else kind]


def settings(kind, *more):
    if kind == SHARED:
        return settings("denoiser", "density.own_encoder=false", *more)
    return parse(override(preset("moons"), [*TINY, f"density.kind={kind}", *NEEDS.get(kind, ()), *more]))


@pytest.fixture(scope="module")
def trained():
    """A run of a kind, trained for a few steps, once."""
    runs = {}

    def of(kind):
        if kind not in runs:
            runs[kind] = prepare(settings(kind))
            train(runs[kind])
        return runs[kind]

    return of


def test_every_kind_is_under_contract():
    assert set(NEEDS) | {"none"} == set(KINDS), "give each new density a line in NEEDS"


@pytest.mark.parametrize("kind", ENERGIES)
def test_it_trains_in_a_preset_by_its_name_alone(trained, kind):
    run = trained(kind)
    assert run.trainer.density.kind == class_of(kind).kind
    terms = {name for leg in run.trainer.course.legs for name in leg.stage.density_weights}
    assert terms <= set(class_of(kind).terms)
    assert bool(terms) != class_of(kind).exact


@pytest.mark.parametrize("kind", ENERGIES)
def test_its_energy_is_a_number_for_each_point_and_its_score_the_slope(trained, kind):
    run = trained(kind)
    model, density, x = run.trainer.model, run.trainer.density, run.data.test[:6]
    energy = density.energy(model)
    assert energy(x).shape == (6,)
    torch.testing.assert_close(density.log_density(model, x), -energy(x).detach())
    torch.testing.assert_close(energy(x)[:2], energy(x[:2]))  # a point's energy is its own
    found = density.score(model, x)
    double = run.trainer.density.energy(_double(model))
    way, h = torch.randn(6, 2, dtype=torch.float64), 1e-5
    with torch.no_grad():
        slope = -(double(x.double() + h * way) - double(x.double() - h * way)) / (2 * h)
    torch.testing.assert_close((found.double() * way).sum(dim=1), slope, rtol=5e-3, atol=5e-3)


def _double(model):
    return copy.deepcopy(model).double().eval()


@pytest.mark.parametrize("kind", ENERGIES)
def test_it_gives_samples_by_a_stream(trained, kind):
    run = trained(kind)
    first, same, other = (run.trainer.density.sample(run.trainer.model, 7, Streams(s)["x"]) for s in (0, 0, 1))
    assert first.shape == (7, 2)
    assert first.isfinite().all()
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert not first.requires_grad


@pytest.mark.parametrize("direction", ["carried", "denoise", "latent"])
@pytest.mark.parametrize("kind", ENERGIES)
def test_walks_go_along_it_in_every_way_it_knows(kind, direction):
    walk = ("walk.steps=2", f"walk.direction={direction}", "walk.radius=0.1")
    if direction == "latent" and not class_of(kind).has_latent:
        with pytest.raises(UserError, match="needs a density with a latent"):
            prepare(settings(kind, *walk))
        return
    run = prepare(settings(kind, *walk, *(["stage1.iterations=2"] if class_of(kind).terms else [])))
    train(run)
    ends = run.trainer.walks.ends
    assert ends.shape == run.data.train.shape
    assert ends.isfinite().all()
    assert not torch.equal(ends, run.data.train)


@pytest.mark.parametrize("kind", ENERGIES)
def test_what_is_saved_says_the_same_when_it_is_loaded(trained, kind, tmp_path):
    run = trained(kind)
    fitted = run.fitted()
    fitted.save(tmp_path / "model")
    x = run.data.inputs.back(run.data.test[:5])
    torch.testing.assert_close(Fitted.load(tmp_path / "model").log_density(x), fitted.log_density(x))


@pytest.mark.parametrize("kind", [kind for kind in ENERGIES if class_of(kind).terms])
def test_a_stopped_run_goes_on_bit_for_bit(trained, kind, tmp_path):
    first, second = prepare(settings(kind)), prepare(settings(kind))
    first.trainer.fit(stop_after=6)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    whole, loaded = trained(kind).trainer.model.state_dict(), second.trainer.model.state_dict()
    assert all(torch.equal(whole[name], loaded[name]) for name in whole)


def grid(reach=8.0, side=200):
    line = torch.linspace(-reach, reach, side, dtype=torch.float64)
    return torch.cartesian_prod(line, line), (line[1] - line[0]) ** 2


@pytest.mark.parametrize("coupling", [True, False])
def test_a_flow_integrates_to_one_and_is_its_own_inverse(coupling):
    flow = Flow(2, transforms=2, hidden=(16,), bins=6, coupling=coupling, generator=torch.Generator().manual_seed(0))
    flow = _stirred(flow).double()
    flow.set_scales(torch.tensor([0.5, -0.3]), 1.2, 0.0)
    points, area = grid()
    x = torch.randn(20, 2, dtype=torch.float64)
    with torch.no_grad():
        assert float(flow.log_prob(points).exp().sum() * area) == pytest.approx(1, abs=2e-3)
    torch.testing.assert_close(flow.decoded(flow.encoded(x)), x, rtol=1e-5, atol=1e-5)


def _stirred(module, width=0.3):
    """Weights that were not trained, but are not at their beginning either."""
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(width * torch.randn(p.shape, generator=g))
    return module


@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 2, 1), (2, 1, 1)])
def test_an_image_of_two_numbers_integrates_to_one(shape):
    net = _stirred(PixelNet(shape, 4, 2, 3, torch.Generator().manual_seed(0)), 0.1).double()
    net.set_scales(0.1, 0.8, 0.0)
    points, area = grid(25, 500)
    with torch.no_grad():
        assert float(net.log_prob(points.view(-1, *shape)).exp().sum() * area) == pytest.approx(1, abs=5e-3)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_number_of_an_image_knows_only_those_before_it(channels):
    net = _stirred(PixelNet((channels, 5, 5), 4, 2, 2, torch.Generator().manual_seed(0))).double()
    x = torch.randn(1, channels, 5, 5, dtype=torch.float64, requires_grad=True)
    _, places, _ = net(x)
    order = torch.arange(channels * 25).view(5, 5, channels).permute(2, 0, 1)
    for number in (0, 7, channels * 25 - 1):
        at = (order == number).nonzero()[0].tolist()
        (gradient,) = torch.autograd.grad(places[(0, 0, *at)], x, retain_graph=True)
        seen = gradient[0] != 0
        assert not seen[order >= number].any()
        assert seen.any() == (number > 0)


def test_samples_of_an_image_are_those_of_its_likelihood():
    """Mean and spread of two numbers, by samples and by the grid."""
    shape = (1, 2, 1)
    net = _stirred(PixelNet(shape, 4, 2, 2, torch.Generator().manual_seed(0)), 0.2)
    points, area = grid(25, 400)
    with torch.no_grad():
        p = net.double().log_prob(points.view(-1, *shape)).exp() * area
    mean = (p[:, None] * points).sum(0)
    spread = (p[:, None] * (points - mean).square()).sum(0).sqrt()
    x = net.float().sample(4000, torch.Generator().manual_seed(2)).view(-1, 2).double()
    torch.testing.assert_close(x.mean(0), mean, rtol=0, atol=float(4 * spread.max() / 4000**0.5))
    torch.testing.assert_close(x.std(0), spread, rtol=0.1, atol=0)


def linear_gaussian():
    """x = A z + c + sigma n: the likelihood is a normal density, the posterior a normal one too."""
    part = Autoencoder(2, 2, (2,), 4, None, torch.Generator().manual_seed(0)).double()
    a, c = torch.tensor([[1.0, 0.5], [-0.3, 0.8]], dtype=torch.float64), torch.tensor([0.2, -0.1]).double()
    part.decoder = torch.nn.Linear(2, 2).double()
    with torch.no_grad():
        part.decoder.weight.copy_(a)
        part.decoder.bias.copy_(c)
        part.log_sigma.fill_(math.log(0.7))
    truth = torch.distributions.MultivariateNormal(c, a @ a.t() + 0.49 * torch.eye(2).double())
    return part, a, c, truth


def bound_by_many(part, x, latent):
    g = torch.Generator().manual_seed(3)
    draws = [part.bound(x, latent, torch.randn(len(x), 2, generator=g, dtype=torch.float64)) for _ in range(4000)]
    return torch.stack(draws).mean(0)


def test_the_bound_of_an_autoencoder_is_below_the_truth_and_reaches_it_at_the_true_posterior():
    part, a, c, truth = linear_gaussian()
    x = truth.sample((5,))
    with torch.no_grad():
        precision = torch.eye(2).double() + a.t() @ a / 0.49
        wide = precision.diagonal().rsqrt().log()  # the best normal of independent numbers
        part.posterior.weight.copy_(torch.cat([torch.linalg.solve(precision, a.t() / 0.49), torch.zeros(2, 2)]))
        part.posterior.bias.copy_(torch.cat([-part.posterior.weight[:2] @ c, wide]))
        best = bound_by_many(part, x, x)
        gap = (precision.diagonal().log().sum() - torch.logdet(precision)) / 2  # what independence costs
        torch.testing.assert_close(best, truth.log_prob(x) - gap, rtol=0, atol=0.1)
        part.posterior.bias.add_(0.5)  # any other posterior
        assert (bound_by_many(part, x, x) < best - 0.05).all()
        assert (best < truth.log_prob(x)).all()


def test_codes_of_rows_and_of_images_are_decoded_to_their_shape():
    for shape in ((3,), (1, 8, 8), (3, 28, 28)):
        part = Autoencoder(5, 4, shape, 8, None, torch.Generator().manual_seed(0))
        assert part.decoded(torch.zeros(2, 4)).shape == (2, *shape)


def test_flows_take_rows_and_say_what_images_have():
    box = Box(torch.zeros(1, 8, 8), torch.ones(1, 8, 8))
    density = KINDS["flow"]().bind(Place(box, box))
    with pytest.raises(UserError, match=r"images have density\.kind=autoregressive"):
        density.module(4, lambda name: torch.nn.Identity(), Streams(0), (1, 8, 8))


@pytest.mark.parametrize("kind", ["autoregressive", "vae", SHARED])
def test_images_train_by_it_too(kind):
    small = {
        "autoregressive": ["density.features=4", "density.layers=1"],
        "vae": ["density.width=16"],
        SHARED: ["density.features=4", "density.own_encoder=false"],
    }[kind]
    brief = ["stage1.iterations=3", "stage2.iterations=2", "stage1.batch_size=16", "stage2.batch_size=16"]
    brief.append("walk.radius=0.3")  # only a denoiser chooses it
    kind = class_of(kind).kind
    run = prepare(parse(override(preset("digits"), [*brief, f"density.kind={kind}", *small, "model.width=4"])))
    train(run)
    model, density = run.trainer.model, run.trainer.density
    x = run.data.test[torch.arange(4)]
    assert density.log_density(model, x).isfinite().all()
    assert density.score(model, x).shape == x.shape
    assert density.sample(model, 2, Streams(0)["x"]).shape == x[:2].shape


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flow", "autoregressive"])
def test_after_training_on_moons_samples_cannot_be_told_from_data(kind):
    """A likelihood alone, one short stage; half the points are held out."""
    config = parse(
        override(preset("moons"), [f"density.kind={kind}", "stage1.iterations=700", "stage2.iterations=0", "seed=4"])
    )
    run = prepare(config)
    train(run)
    samples = run.trainer.density.sample(run.trainer.model, 500, Streams(5)["x"])
    assert mmd_test(samples, run.data.test[:500], torch.Generator().manual_seed(0))["p_value"] > 0.01
    far = run.data.test[:500].mean(0) + 2 * torch.randn(500, 2, generator=torch.Generator().manual_seed(1))
    near, away = (run.trainer.density.log_density(run.trainer.model, x).mean() for x in (run.data.test[:500], far))
    assert near > away + 2


def test_in_the_plane_number_by_number_is_the_flow():
    """One number is free and the other is given it, whichever way one says so: a table has one line for both."""
    flows = [
        Flow(2, transforms=2, hidden=(8,), bins=4, coupling=coupling, generator=torch.Generator().manual_seed(0))
        for coupling in (True, False)
    ]
    x = torch.randn(9, 2)
    torch.testing.assert_close(flows[0].log_prob(x), flows[1].log_prob(x))


def test_a_density_s_score_is_that_of_its_energy():
    run = prepare(settings("flow"))
    energy = run.trainer.density.energy(run.trainer.model)
    x = run.data.test[:3]
    torch.testing.assert_close(run.trainer.density.score(run.trainer.model, x), score(energy, x))

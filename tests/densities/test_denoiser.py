"""The density of a denoiser: closed forms on a Gaussian, its term, what it learns, and runs that stop and go on."""

import pytest
import torch

from gedi.building import build_model
from gedi.config import override, parse
from gedi.data import Dataset
from gedi.densities.denoiser import DenoiserDensity, network_of
from gedi.densities.density import Place
from gedi.errors import UserError
from gedi.fitted import Fitted
from gedi.fitting import fit, measured_run, prepare, train
from gedi.nn.denoiser import Denoiser
from gedi.presets import preset
from gedi.processes import Processes
from gedi.random import Streams
from gedi.sampling import Box
from gedi.score import normal
from gedi.training.step import make_batch
from gedi.views import manifold_walk

WEIGHTS = {"denoising": 1.0}
ROWS = ["density={kind: denoiser}", "stage1.density={denoising: 1, generative: null}", "stage2.density=null"]
TINY = [
    "model.width=4", "model.latent=8", "model.projector=8", "model.embedding=8", "model.finer=12", "density.features=4",
    "stage1.iterations=12", "stage1.batch_size=16", "stage2.iterations=12", "stage2.batch_size=32", "log_every=4",
    "guard.every=5",
]  # fmt: skip


#: Without an encoder of its own: beside the clusters, walks by the live one once it has learnt for a while.
SHARED = [
    "density.own_encoder=false", "stage1.iterations=0", "stage2.density={denoising: 1}", "walk.energy=live",
    "walk.start=0.5",
]  # fmt: skip
OWN = pytest.mark.parametrize("own", ["true", "false"])


def setup(*settings, shape=(2,), processes=Processes(), own="true"):  # noqa: B008
    config = parse(override(preset("circles"), [*ROWS, f"density.own_encoder={own}", *settings]))
    far = torch.full(shape, 50.0).double()
    model = build_model(config, shape, 2, Streams(0)).double()
    return config.density.bind(Place(Box(-far, far), Box(-far, far), processes)), model


def alone(function, parts):
    return list(torch.split(function(torch.cat(parts)), [len(part) for part in parts]))


def test_scales_come_from_the_data_and_follow_their_units(seeded):
    x = torch.randn(500, 2, generator=seeded(0))
    found = []
    for unit in (1.0, 100.0):
        density, model = setup()
        density.measure(model, unit * x)
        network = network_of(model)
        found.append(torch.stack([network.spread, network.lowest, network.highest]) / unit)
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=0)
    spread, lowest, highest = found[0].tolist()
    assert spread == pytest.approx(1, rel=0.1)
    assert highest == pytest.approx(3 * spread)
    assert 0 < lowest < 0.1  # of five hundred points in the plane
    density, model = setup("density.lowest=0.3", "density.highest=2.0")
    density.measure(model, x)
    assert (network_of(model).lowest.item(), network_of(model).highest.item()) == (
        pytest.approx(0.3),
        pytest.approx(2.0),
    )


@OWN
@pytest.mark.parametrize("columns", [1, 2, 40])
def test_untrained_its_energy_is_that_of_the_blurred_gaussian(columns, own, seeded):
    density, model = setup(shape=(columns,), own=own)
    centre = torch.randn(columns, generator=seeded(0), dtype=torch.float64)
    network_of(model).set_scales(centre, 2.0, 0.3, 6.0)
    x = centre + 2 * torch.randn(9, columns, generator=seeded(1), dtype=torch.float64)
    energy, blurred = density.energy(model), 2 * (2.0**2 + 0.3**2)
    lowest = energy(centre.unsqueeze(0))
    exact = (x - centre).square().sum(dim=1) / blurred
    torch.testing.assert_close(energy(x) - lowest, exact, rtol=0.01, atol=0)  # the sum for the integral
    torch.testing.assert_close(density.log_density(model, x), -energy(x).detach())
    torch.testing.assert_close(density.score(model, x), -2 * (x - centre) / blurred, rtol=0.01, atol=1e-9)


def test_untrained_its_samples_are_the_gaussians_and_stay_in_the_box(seeded):
    density, model = setup()
    network_of(model).set_scales(torch.tensor([3.0, -1.0]), 2.0, 0.1, 6.0)
    x = density.sample(model, 20_000, seeded(0))
    torch.testing.assert_close(x.mean(dim=0), torch.tensor([3.0, -1.0]).double(), rtol=0, atol=0.06)
    torch.testing.assert_close(x.std(dim=0), torch.tensor([2.0, 2.0]).double(), rtol=0.06, atol=0)  # fifty steps
    assert torch.equal(x[:5], density.sample(model, 20_000, seeded(0))[:5])
    near = DenoiserDensity().bind(Place(Box(-torch.ones(2), torch.ones(2)), density._place.initial))
    assert near.sample(model, 500, seeded(0)).abs().max() <= 1


def test_a_step_of_a_walk_goes_a_share_of_the_way_to_the_nearest_neighbour(seeded):
    """Of a Gaussian a step from x leads to the share s^2 / (s^2 + sigma^2) of x and of noise."""
    x = torch.randn(60, 20, generator=seeded(0), dtype=torch.float64)
    for unit, reach in ((1.0, 0.6), (100.0, 0.6), (1.0, 0.3)):
        density, model = setup(f"density.reach={reach}", shape=(20,))
        density = density.bind(Place(Box(-1e4 * torch.ones(20), 1e4 * torch.ones(20)), density._place.initial))
        density.measure(model, unit * x)
        density.settle(model, unit * x)
        width, s = density.energy(model).walk_width / unit, float(network_of(model).spread) / unit
        share = s**2 / (s**2 + width**2)
        step = ((1 - share) ** 2 * s**2 + share**2 * width**2) ** 0.5
        rows = x.numpy()
        nearest = [min(((a - b) ** 2).mean() ** 0.5 for j, b in enumerate(rows) if j != i) for i, a in enumerate(rows)]
        assert step == pytest.approx(reach * sorted(nearest)[30], rel=0.05)


def test_the_mean_before_the_noise_is_one_pass_and_no_score(monkeypatch):
    density, model = setup()
    network_of(model).set_scales(torch.zeros(2), 1.0, 0.1, 3.0)
    monkeypatch.setattr("gedi.score.energy_and_score", lambda *args: pytest.fail("a score was taken"))
    x = torch.tensor([[2.0, 4.0]]).double()
    torch.testing.assert_close(density.denoised(model, x, 1.0), x / 2)


@OWN
def test_a_point_without_noise_is_encoded_as_it_is_and_noise_makes_it_no_larger(own, seeded):
    _, model = setup(own=own)
    network = network_of(model)
    x = torch.tensor([7.0, -3.0]) + 2 * torch.randn(50_000, 2, generator=seeded(0), dtype=torch.float64)
    network.set_scales(torch.tensor([7.0, -3.0]), 2.0, 0.1, 6.0)
    torch.testing.assert_close(network.encoded(x, torch.full((len(x),), 1e-9).double()), x)
    width = torch.full((len(x),), 5.0).double()
    seen = network.encoded(x + 5 * torch.randn(x.shape, generator=seeded(1), dtype=torch.float64), width)
    torch.testing.assert_close(seen.mean(dim=0), x.mean(dim=0), rtol=0, atol=0.05)
    torch.testing.assert_close(seen.std(dim=0), x.std(dim=0), rtol=0.02, atol=0)


@pytest.mark.parametrize("shape", [(3,), (1, 8, 8), (3, 10, 7)])
def test_what_is_decoded_is_an_offset_and_a_slope_of_the_latent_and_the_width(shape, seeded):
    """Given latent and width, every coordinate's mean is linear in that coordinate and hears of no other."""
    network = Denoiser(shape, 4, latent=5, generator=seeded(0)).double()
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=seeded(1), dtype=torch.float64))
    x, latent, width = (torch.randn(n, generator=seeded(2), dtype=torch.float64) for n in ((1, *shape), (1, 5), (1,)))
    width = width.abs()
    at = torch.zeros_like(x).flatten(1)
    at[0, 1] = 1
    way = at.view_as(x)
    one, two, three = (network.decoded(x + t * way, width, latent) for t in (0, 1, 3))
    assert torch.equal((two != one).flatten(1), at != 0)
    torch.testing.assert_close(three - one, 3 * (two - one))
    assert not torch.equal(network.decoded(x, width, latent + 1), one)
    assert not torch.equal(network.decoded(x, 2 * width, latent) - one, torch.zeros_like(one))
    assert (network(x, width, lambda seen: latent) - one).abs().max() == 0


@pytest.mark.parametrize("shape", [(2,), (1, 8, 8)])
def test_walks_along_the_density_ask_for_one_pass_a_step(shape, seeded, monkeypatch):
    """Untrained, the pass is exactly the score of the Gaussian blurred by the lowest width."""
    density, model = setup(shape=(2,))
    if len(shape) == 3:
        model.density = Denoiser(shape, 4).double()
    centre = torch.randn(shape, generator=seeded(0), dtype=torch.float64)
    network_of(model).set_scales(centre, 2.0, 0.3, 6.0)
    x = centre + torch.randn(5, *shape, generator=seeded(1), dtype=torch.float64)
    exact = -(x - centre) / (2.0**2 + 0.3**2)
    energy = density.energy(model)
    torch.testing.assert_close(normal(energy, x), exact)
    monkeypatch.setattr("gedi.score.energy_and_score", lambda *args: pytest.fail("a gradient was taken"))
    end = manifold_walk(energy, x, seeded(2), steps=3, radius=0.1)
    way, before = (end - x).flatten(1), (x - centre).flatten(1)
    assert way.norm(dim=1).max() <= 0.3 + 1e-9
    # along the level set: the distance from the centre stays, up to the curvature
    torch.testing.assert_close((before + way).norm(dim=1), before.norm(dim=1), rtol=0.05, atol=0)


def latents_of(model, draw):
    """What the step's one pass gives the density."""
    return [model.encoder(part) for part in draw.encoded]


@OWN
def test_the_term_is_the_error_in_errors_of_the_gaussians_denoiser(own, seeded):
    density, model = setup(own=own)
    x = 2 * torch.randn(20_000, 2, generator=seeded(0), dtype=torch.float64)
    density.measure(model, x)
    draw, carried = density.draw(model, x, x, WEIGHTS, None, Streams(1))
    assert carried is None
    width = draw.apart["width"]
    network = network_of(model)
    assert network.lowest <= width.min() < width.max() <= network.highest
    noise = (draw.apart["noised"] - x) / width.unsqueeze(1)
    assert noise.std().item() == pytest.approx(1, rel=0.02)
    found = density.values(model, draw, latents_of(model, draw), WEIGHTS, alone, True)
    assert found.terms["denoising"].item() == pytest.approx(1, rel=0.03)  # of a Gaussian nothing is left to learn
    assert found.figures == {}


def test_without_weight_nothing_is_drawn(g):
    density, model = setup()
    x = torch.zeros(4, 2).double()
    draw, _ = density.draw(model, x, x, {}, None, Streams(0))
    assert not draw.apart
    assert density.values(model, draw, [], {}, alone, True) == ({}, {})


def test_halves_of_a_batch_on_two_processes_make_the_whole(seeded):
    density, model = setup()
    with torch.no_grad():
        network_of(model).body.last.weight.normal_(generator=seeded(0))
    x = torch.randn(8, 2, generator=seeded(1), dtype=torch.float64)
    draw, _ = density.draw(model, x, x, WEIGHTS, None, Streams(1))
    whole = density.values(model, draw, [], WEIGHTS, alone, False).terms["denoising"]
    errors = []
    for half in (slice(0, 4), slice(4, 8)):
        part = draw._replace(apart={name: rows[half] for name, rows in draw.apart.items()})

        def keep(function, parts):
            errors.append(function(*parts))
            return [errors[-1]]

        density.values(model, part, [], WEIGHTS, keep, False)
    torch.testing.assert_close(torch.cat(errors).mean(), whole)


def test_a_shared_encoder_learns_from_the_term_and_the_term_is_that_of_its_energy(seeded):
    density, model = setup(own="false")
    network = network_of(model)
    with torch.no_grad():
        network.body.last.weight.normal_(generator=seeded(0))
    x = torch.randn(6, 2, generator=seeded(1), dtype=torch.float64)
    density.measure(model, x)
    draw, _ = density.draw(model, x, x, WEIGHTS, None, Streams(1))
    term = density.values(model, draw, latents_of(model, draw), WEIGHTS, alone, False).terms["denoising"]
    term.backward()
    assert all(p.grad.abs().max() > 0 for p in model.encoder.parameters())
    assert all(p.grad is None for p in model.projector.parameters())
    noised, width = draw.apart["noised"], draw.apart["width"]
    means = torch.cat([density.denoised(model, y.unsqueeze(0), float(w)) for y, w in zip(noised, width, strict=True)])
    errors = (means - x).square().mean(dim=1) / network.size(width).square()
    torch.testing.assert_close(term.detach(), errors.mean())


@OWN
def test_the_terms_gradient_is_right(own, seeded):
    density, model = setup("density.features=1", own=own)
    network = network_of(model)
    x = torch.randn(5, 2, generator=seeded(1), dtype=torch.float64)
    draw, _ = density.draw(model, x, x, WEIGHTS, None, Streams(1))

    def term(weight):
        with torch.no_grad():
            network.body.last.weight.copy_(weight)
        found = density.values(model, draw, latents_of(model, draw), WEIGHTS, alone, False).terms["denoising"]
        (gradient,) = torch.autograd.grad(found, network.body.last.weight)
        return found.item(), gradient

    weight = torch.randn(network.body.last.weight.shape, generator=seeded(2), dtype=torch.float64)
    way = torch.randn(weight.shape, generator=seeded(3), dtype=torch.float64)
    slope = (term(weight + 1e-5 * way)[0] - term(weight - 1e-5 * way)[0]) / 2e-5
    assert (term(weight)[1] * way).sum().item() == pytest.approx(slope, rel=1e-6)


def two_points(n, seeded):
    sign = torch.randint(0, 2, (n, 1), generator=seeded(0)) * 2.0 - 1
    return torch.cat([sign, torch.zeros(n, 1)], dim=1) + 0.02 * torch.randn(n, 2, generator=seeded(1))


@OWN
def test_it_learns_two_points_by_heart(own, seeded):
    """Of data at -1 and 1 the mean before the noise is tanh(x / sigma^2)."""
    x = two_points(400, seeded)
    settings = ["n_init=1", "stage1.iterations=600", "stage2.iterations=0", "stage1.learning_rate=0.003"]
    settings += ["density.lowest=0.1", "model.clusters=2", f"density.own_encoder={own}"]
    config = parse(override(preset("circles"), [*ROWS, *settings]))
    run = prepare(config, data=Dataset("points", x, x))
    train(run)
    density, model = run.trainer.density, run.trainer.model.eval()
    at = torch.linspace(-1, 1, 9)
    line = torch.stack([at, torch.zeros(9)], dim=1)
    found = density.denoised(model, line, 0.6)
    torch.testing.assert_close(found[:, 0], (at / 0.36).tanh(), rtol=0, atol=0.12)
    energy = density.energy(model)(torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])).detach()
    assert energy[:2].max() + 2 < energy[2:].min()
    samples = density.sample(model, 400, seeded(2))
    assert (samples[:, 0].abs() - 1).abs().median() < 0.15
    assert 0.35 < (samples[:, 0] > 0).float().mean() < 0.65


def run_of_images(*settings):
    run = prepare(parse(override(preset("digits"), [*TINY, *settings])))
    run.trainer.on_log = (log := []).append
    return run, log


@pytest.mark.parametrize(
    ("stop", "settings"),
    [
        (5, ()),
        (17, ()),
        (17, ("walk.energy=noise",)),
        (17, ("walk.energy=live", "walk.refresh=7")),
        (4, SHARED),
        (6, SHARED),
        (9, SHARED),
        (9, (*SHARED, "walk.refresh=3")),
        (7, (*SHARED, "stage2.density_start=0.5", "walk.start=0.8")),
    ],
)
def test_a_run_that_is_stopped_and_loaded_ends_bit_for_bit_as_one_that_is_not(stop, settings, tmp_path):
    (whole, log), (first, begun), (second, ended) = (run_of_images(*settings) for _ in range(3))
    train(whole)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    for name, x in whole.trainer.model.state_dict().items():
        assert torch.equal(x, second.trainer.model.state_dict()[name]), name
    assert begun + ended == log
    width = network_of(whole.trainer.model).walk_width
    assert network_of(whole.trainer.model).lowest < width < network_of(whole.trainer.model).highest
    assert any("denoising" in record for record in log)


def test_the_walk_is_by_the_density_of_stage_1_and_each_batch_is_walked_anew():
    run, _ = run_of_images()
    run.trainer.fit(stop_after=13)
    walks, density = run.trainer.walks, run.trainer.density
    stage = run.trainer.course.leg.stage
    assert walks.ends is None
    x = run.trainer.train[torch.arange(20)]
    own = torch.arange(20)
    one, two = (walks.of(stage, 3, own, x, Streams(s)) for s in (0, 1))
    assert not torch.equal(one, two)
    low, high = run.data.train.pixels.range
    assert low <= one.min() <= one.max() <= high
    with torch.no_grad():
        network_of(run.trainer.model).body.last.weight.fill_(9.0)  # the live one may go where it likes
    assert torch.equal(walks.of(stage, 3, own, x, Streams(0)), one)
    length = (one - x).flatten(1).norm(dim=1)
    noise, _ = run_of_images("walk.energy=noise")
    noise.trainer.fit(stop_after=13)
    control = noise.trainer.walks.of(noise.trainer.course.leg.stage, 3, own, x, Streams(0))
    torch.testing.assert_close((control - x).flatten(1).norm(dim=1), length)
    assert density.encoders == 2


def test_a_run_says_how_wide_its_noise_is_and_how_far_walks_get_by_it():
    run, _ = run_of_images("walk.steps=1")
    train(run)
    metrics, points = measured_run(run)
    assert metrics["walk_width"] == pytest.approx(float(network_of(run.trainer.model).walk_width))
    assert metrics["walk_steps"] == 1
    assert metrics["walk_reach"] == pytest.approx(0.6, rel=0.2)  # chosen on training images, told on others
    assert "energy_gap" not in metrics  # there are no chains
    assert "fresh_energy_gap" in metrics
    assert len(points["samples"]) == 64


def test_walks_of_a_live_density_begin_at_their_share_of_the_stage_and_choose_the_width_then():
    run, log = run_of_images(*SHARED, "stage2.iterations=10")
    network, walks = network_of(run.trainer.model), run.trainer.walks
    x, own = run.trainer.train[torch.arange(20)], torch.arange(20)

    def ends(iteration):
        return walks.of(run.trainer.course.leg.stage, iteration, own, x, Streams(0))

    run.trainer.fit(stop_after=5)
    assert torch.equal(ends(4), x)
    assert network.walk_width == network.lowest  # nothing is chosen yet
    assert not torch.equal(ends(5), x)
    assert network.walk_width > network.lowest
    run.trainer.fit(stop_after=1)
    chosen = network.walk_width.clone()
    run.trainer.fit()
    assert network.walk_width == chosen
    assert "denoising" in log[-1]
    assert run.trainer.density.encoders == 1


def test_the_densitys_terms_may_begin_once_clusters_have_formed():
    """Until then its weights stay as they are, and nothing of it is in the sum."""
    run, log = run_of_images(*SHARED, "stage2.iterations=10", "stage2.density_start=0.45", "walk.start=0.7", "seed=1")
    begun = {name: p.clone() for name, p in network_of(run.trainer.model).named_parameters()}
    run.trainer.fit(stop_after=5)
    assert all(torch.equal(p, begun[name]) for name, p in network_of(run.trainer.model).named_parameters())
    run.trainer.fit(stop_after=1)
    assert not torch.equal(network_of(run.trainer.model).body.last.bias, begun["body.last.bias"])
    run.trainer.fit()
    terms = {record["iteration"]: "denoising" in record for record in log if "event" not in record}
    assert terms == {4: False, 8: True, 10: True}


def test_the_live_density_is_walked_on_by_the_clusters_own_encoder():
    run, _ = run_of_images(*SHARED)
    run.trainer.fit(stop_after=8)
    x, own = run.trainer.train[torch.arange(20)], torch.arange(20)
    stage = run.trainer.course.leg.stage
    before = run.trainer.walks.of(stage, 8, own, x, Streams(0))
    with torch.no_grad():
        run.trainer.model.encoder.last.weight.mul_(3)
    assert not torch.equal(run.trainer.walks.of(stage, 8, own, x, Streams(0)), before)


@pytest.mark.parametrize(("share", "walked"), [(0.0, 0), (0.25, 5), (0.5, 10), (1.0, 20)])
@pytest.mark.parametrize("energy", ["stage1", "noise"])
def test_a_share_of_the_points_walks_and_the_others_stay(share, walked, energy):
    run, _ = run_of_images(f"walk.share={share}", f"walk.energy={energy}")
    run.trainer.fit(stop_after=13)
    x, own = run.trainer.train[torch.arange(20)], torch.arange(20)
    stage = run.trainer.course.leg.stage
    moved = [(run.trainer.walks.of(stage, 3, own, x, Streams(s)) != x).flatten(1).any(dim=1) for s in (0, 1)]
    assert [int(m.sum()) for m in moved] == [walked, walked]
    assert torch.equal(*moved) == (share in (0, 1))  # others each time


@OWN
def test_a_fitted_model_is_saved_with_its_scales_and_answers(own, tmp_path, seeded):
    x = 10 + 5 * two_points(200, seeded)
    short = ["stage1.iterations=20", "stage2.iterations=20", "walk.steps=2", "walk.direction=denoise", "n_init=1"]
    shared = SHARED if own == "false" else []
    fitted = fit(x, parse(override(preset("circles"), [*ROWS, *short, *shared])), clusters=2)
    fitted.save(tmp_path)
    again = Fitted.load(tmp_path)
    for ask in ("log_density", "score", "walk", "predict"):
        assert torch.equal(getattr(fitted, ask)(x), getattr(again, ask)(x)), ask
    assert torch.equal(fitted.sample(5), again.sample(5))
    assert (fitted.walk(x) - 10).abs().max() < 10


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["walk.energy=radial"], "the control of denoising is noise"),
        (["walk.direction=fresh"], "walk.radius=null leaves it to the density"),
        (["walk.relax=3"], "walk.relax=3 must be 0"),
        (["stage1.iterations=0"], "no stage trains it: give stage1 iterations, or .* walk.composed=false"),
        ([*SHARED, "walk.energy=stage1"], "no stage before stage2 trains the density .* walk.energy=live"),
        ([*SHARED, "walk.energy=noise"], "no stage before stage2 trains the density .* walk.energy=live"),
        (["density.chains=3"], r"unknown key 'density\.chains'"),
        (["stage1.density.contrast=1"], "unknown term of density.kind=denoiser"),
        (["density.lowest=0"], r"density\.lowest"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, said):
    with pytest.raises(UserError, match=said):
        run_of_images(*settings)


def test_a_model_without_one_says_so():
    other = build_model(parse(preset("circles")), (2,), 2, Streams(0))
    with pytest.raises(TypeError, match="has no denoiser"):
        network_of(other)


def test_it_learns_augmented_points_where_it_is_told_to():
    """The clean points of a step are the batch, or an augmentation of it without the noise of the view."""
    found = {}
    for augmented in ("false", "true"):
        run, _ = run_of_images(f"density.augmented={augmented}", "augment.noise=5.0")
        stage = run.trainer.course.leg.stage
        x = run.trainer.train[torch.arange(16)]
        batch, _ = make_batch(stage, run.trainer.model, x, None, None, Streams(0), 0.0)
        found[augmented] = batch.draw.apart["clean"]
    assert torch.equal(found["false"], x)
    moved = found["true"]
    assert not torch.equal(moved, x)
    low, high = run.data.train.pixels.range
    assert low - 1e-5 <= moved.min() <= moved.max() <= high + 1e-5  # warped, and nothing added
    wanted = stage.view.augment(x, Streams(0)["augmented"])
    torch.testing.assert_close(moved, wanted)

"""The kernel density: against sums written out, its integral and its samples; saved, loaded, and on odd tables."""

import math

import pytest
import torch
from scipy.stats import kstest, multivariate_normal

import gedi
from gedi.building import build_model
from gedi.config import parse
from gedi.densities.density import Place
from gedi.densities.kernel import KernelDensity, KernelPoints, make_kernels
from gedi.evaluation import auroc
from gedi.graph import local_scales, neighbours
from gedi.graph.bumps import LeftOut, fit_bumps, sums_around
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import Box
from gedi.settings import merge

WALKS = {"swapped": {"weight": 1.0}, "swapped_walk": {"kind": "swapped", "look": "walk", "weight": 1.0}}
SHORT = {
    "density": {"kind": "kernel"},
    "stage1": {"iterations": 0, "density": None},
    "stage2": {"iterations": 15, "density": None, "batch_size": 32},
    "walk": {"steps": 3},
    "n_init": 1,
}


def on(x, **settings):
    """A density bound to points, and a network that has it."""
    box = Box.around(x, 0.5)
    config = parse(merge(preset("toy"), merge(SHORT, {"density": settings})))
    density = config.density.bind(Place(box, box, points=x))
    return density, build_model(config, x.shape[1:], 2, Streams(0), density=density)


def test_it_is_the_sum_of_normals_as_wide_as_the_seventh_neighbour_is_far(g):
    x, at = torch.randn(50, 3, generator=g).double(), torch.randn(20, 3, generator=g).double()
    density, model = on(x, width=0.8, pull=0)
    scale = local_scales(neighbours(x, 7)[0])
    wanted = sum(
        multivariate_normal(mean.numpy(), (0.8 * float(s)) ** 2 / 3).pdf(at.numpy())
        for mean, s in zip(x, scale, strict=True)
    )
    torch.testing.assert_close(density.log_density(model, at), torch.from_numpy(wanted / 50).log())


def test_the_score_is_its_gradient(g):
    x = torch.randn(60, 4, generator=g).double()
    density, model = on(x)
    at = torch.randn(9, 4, generator=g, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(-density.energy(model)(at).sum(), at)
    torch.testing.assert_close(density.score(model, at.detach()), gradient)
    torch.autograd.gradcheck(density.energy(model), at)


def test_it_integrates_to_1(g):
    x = torch.randn(40, 2, generator=g).double()
    density, model = on(x)
    line = torch.linspace(-8, 8, 400, dtype=torch.float64)
    mass = density.log_density(model, torch.cartesian_prod(line, line)).exp().sum() * (line[1] - line[0]) ** 2
    assert mass.item() == pytest.approx(1, abs=1e-3)


def test_moving_and_turning_change_nothing_and_scaling_a_constant(g):
    x, at = torch.randn(80, 3, generator=g).double(), torch.randn(9, 3, generator=g).double()
    turn = torch.linalg.qr(torch.randn(3, 3, generator=g).double())[0]
    (one, a), (other, b) = on(x), on(10 * x @ turn + 1e4)
    found = other.log_density(b, 10 * at @ turn + 1e4)
    torch.testing.assert_close(found, one.log_density(a, at) - 3 * math.log(10), rtol=1e-5, atol=1e-5)


def test_samples_have_its_distribution(g):
    x = torch.randn(30, 1, generator=g).double()
    density, model = on(x)
    samples = density.sample(model, 4000, g)[:, 0]
    points, widths = model.density.centres[:, 0], model.density.widths

    def cdf(at):
        return torch.special.ndtr((torch.as_tensor(at)[:, None] - points) / widths).mean(dim=1).numpy()

    assert kstest(samples.numpy(), cdf).pvalue > 0.01
    assert kstest(samples.numpy() + 0.2, cdf).pvalue < 0.01  # the test can fail


def around_without(x, j, i, count):
    """The mean of point j and its neighbours, point i never having been among these."""
    near = (x - x[j]).norm(dim=1).argsort(stable=True)[: count + 1]
    return x[near[near != i]].mean(dim=0)


@pytest.mark.parametrize("pull", [0.0, 0.5, 1.0])
def test_a_point_left_out_helps_neither_bumps_nor_means(pull, g):
    x, count = torch.randn(40, 3, generator=g).double(), 6
    number = neighbours(x, count)[1]
    widths = 0.2 + torch.rand(40, generator=g).double()
    wanted = []
    for i in range(40):
        others = [j for j in range(40) if j != i]
        centres = torch.stack([x[j] + pull * (around_without(x, j, i, count) - x[j]) for j in others])
        logs = [
            multivariate_normal(c.numpy(), float(widths[j]) ** 2).logpdf(x[i].numpy())
            for j, c in zip(others, centres, strict=True)
        ]
        wanted.append(torch.tensor(logs).logsumexp(dim=0) - math.log(40))
    found = LeftOut(x, number, sums_around(x, number), pull, 40).likelihood(widths)
    assert found == pytest.approx(float(torch.stack(wanted).mean()))


def test_the_factor_is_bettered_and_copies_do_not_make_it_narrow(g):
    x = torch.randn(60, 2, generator=g).double()
    widths = torch.full((60,), 0.3).double()
    number = neighbours(x, 5)[1]
    left_out = LeftOut(x, number, sums_around(x, number), 0.0, 60)
    better = left_out.better_factor(widths, 4.0)
    assert left_out.likelihood(better * widths) > left_out.likelihood(4.0 * widths)
    assert fit_bumps(torch.cat([x, x]), pull=0).widths.median() > 0.5 * fit_bumps(x, pull=0).widths.median()


@pytest.mark.parametrize("columns", [10, 50, 200])
def test_samples_are_as_wide_as_the_data_in_many_dimensions(columns, g):
    """On the points themselves bumps would add their own width: a third and more in 50 columns."""
    x = torch.randn(1500, columns, generator=g)
    density, model = on(x)
    assert density.sample(model, 2000, g).std().item() == pytest.approx(1, rel=0.06)
    density, model = on(x, pull=0)
    assert density.sample(model, 2000, g).std().item() > 1.15


def test_fewer_points_get_a_smoother_density(seeded):
    few, many = (make_kernels(torch.randn(n, 2, generator=seeded(1)), 5000, None, seeded(0)) for n in (50, 5000))
    assert few.widths.median() > 3 * many.widths.median()


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(1, 2),
        torch.randn(2, 2),
        torch.randn(50, 1),
        torch.zeros(60, 3),
        torch.randn(100, 1000),
        torch.cat([torch.randn(60, 1), torch.full((60, 999), 5.0)], dim=1),
        torch.randint(3, (500, 2)).float(),
        1e6 + torch.randn(200, 3),
        torch.cat([torch.randn(200, 2), torch.tensor([[1e6, 0.0]])]),
    ],
    ids=["1 point", "2 points", "1 column", "one place", "1000 columns", "constant", "ties", "far off", "outlier"],
)
def test_odd_tables(x, g):
    density, model = on(x)
    for at in (x, x.mean(dim=0, keepdim=True), x[:1] + 1e6):
        assert torch.isfinite(density.log_density(model, at)).all()
        assert torch.isfinite(density.score(model, at)).all()
    samples = density.sample(model, 50, g)
    assert samples.shape == (50, x.shape[1])
    assert torch.isfinite(density.log_density(model, samples)).all()
    assert density.log_density(model, x).mean() > density.log_density(model, x[:1] + 1e6).mean()


def test_a_million_points_cost_what_it_stands_on(g):
    x = torch.randn(1_000_000, 4, generator=g)
    density, model = on(x, points=500)
    assert len(model.density.points) == 500
    assert density.footprint() == {"density.points=500": 500}
    assert density.log_density(model, x[:3000]).shape == (3000,)


@pytest.mark.parametrize("columns", [2, 10, 64])
def test_outliers_are_told_from_new_points_of_the_same_kind(columns, g):
    """Where one normal would fail: two groups, and outliers between them."""
    centre = torch.full((columns,), 4 / columns**0.5)
    side = torch.randint(2, (600, 1), generator=g) * 2 - 1
    x = side * centre + 0.4 * torch.randn(600, columns, generator=g)
    density, model = on(x[:400])
    between = 0.4 * torch.randn(200, columns, generator=g)
    assert auroc(density.log_density(model, x[400:]), density.log_density(model, between)) > 0.95


@pytest.fixture(scope="module")
def fitted():
    g = torch.Generator().manual_seed(0)
    rows = torch.cat([torch.randn(70, 3, generator=g), torch.randn(70, 3, generator=g) + 8]) * 5 + 100
    return gedi.fit(rows, SHORT | {"stage2": {**SHORT["stage2"], "terms": WALKS}}, clusters=2), rows


def test_it_answers_in_the_units_of_the_table_and_knows_of_no_training(fitted):
    model, rows = fitted
    assert model.log_density(rows).mean() > model.log_density(rows + 100).mean()
    assert model.score(rows).shape == rows.shape
    samples = model.sample(500)
    assert (samples.mean(dim=0) - rows.mean(dim=0)).abs().max() < 5
    assert model.walk(rows[:5]).shape == (5, 3)
    assert not list(model.model.density.parameters())


def test_saved_and_loaded_it_is_the_same(fitted, tmp_path):
    model, rows = fitted
    model.save(tmp_path)
    again = gedi.Fitted.load(tmp_path)
    assert torch.equal(again.log_density(rows), model.log_density(rows))
    assert torch.equal(again.sample(9), model.sample(9))
    assert torch.equal(again.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("points", "widths"),
    [
        (torch.zeros(4, 2), torch.ones(4)),
        (torch.zeros(4, 3), torch.ones(5)),
        (torch.zeros(4, 3), torch.zeros(4)),
        (torch.full((4, 3), torch.nan), torch.ones(4)),
    ],
    ids=["columns", "widths", "no width", "no numbers"],
)
def test_kernels_of_another_table_are_refused(points, widths):
    held = KernelPoints(torch.empty(0, 3), torch.empty(0))
    with pytest.raises(RuntimeError, match="no kernels on points like these"):
        held.load_state_dict({"points": points, "centres": points, "widths": widths})


def test_settings_are_checked():
    assert KernelDensity().kind == "kernel"
    with pytest.raises(gedi.errors.UserError, match=r"density\.points"):
        parse(merge(preset("toy"), merge(SHORT, {"density": {"points": 0}})))

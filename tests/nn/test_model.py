import copy

import pytest
import torch
from torch import nn

from gedi.nn import MLP, EnergyHead, Model, Projector, Prototypes
from gedi.sampling import Langevin
from gedi.views import manifold_walk


def model(encoder=None, second=None):
    encoder = encoder or MLP(2, (8, 8), 3)
    return Model(encoder, Projector(3, 6, 4), Prototypes(4, 5), density=EnergyHead(3, second))


def plain_encoder():
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))


def buffers_of(module):
    return {name: value.clone() for name, value in module.named_buffers()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def touched(loss, module):
    """Whether the loss sends any gradient to the module's parameters."""
    parameters = list(module.parameters())
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return any(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients)


@pytest.mark.parametrize("make", [lambda: None, plain_encoder])
def test_the_energy_is_minus_the_projection_of_the_latent_on_u(make):
    net = model(make())
    x = torch.randn(7, 2)
    by_hand = -torch.stack([net.density.direction @ latent for latent in net.encoder(x)])
    torch.testing.assert_close(net.energy(x), by_hand)
    torch.testing.assert_close(net(x).energy, by_hand)


@pytest.mark.parametrize("make", [lambda: None, plain_encoder])
def test_with_score_is_the_energy_and_minus_its_gradient(make):
    net = model(make()).double()
    x = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    energy = net.energy(x)
    (gradient,) = torch.autograd.grad(energy.sum(), x)
    e, s = net.energy.with_score(x.detach())
    torch.testing.assert_close(e, energy, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(s, -gradient, rtol=1e-10, atol=1e-10)


def test_in_half_precision_the_closed_form_is_that_of_the_weights():
    net = model()
    x = torch.randn(7, 2)
    exact = copy.deepcopy(net).double().energy.with_score(x.double())
    with torch.autocast("cpu", torch.bfloat16):
        ours = net.energy.with_score(x)
    for part, true in zip(ours, exact, strict=True):
        torch.testing.assert_close(part.double(), true, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", [0.0, 1e3])
def test_in_half_precision_small_differences_of_energies_are_not_rounded_away(level):
    net = model(nn.Identity())
    with torch.no_grad():
        net.density.direction.copy_(torch.tensor([1.0, 0.125, 0.0]))
    latent = torch.tensor([[level, 0.0, 0.0], [level, 1.0, 0.0]]).bfloat16()  # as an encoder gives them
    with torch.autocast("cpu", torch.bfloat16):
        energy = net.energy(latent)
    assert energy.dtype == torch.float32
    assert (energy[0] - energy[1]).item() == 0.125


@pytest.mark.parametrize("finer", [False, True])
def test_in_half_precision_heads_work_in_the_precision_of_the_weights(finer):
    net = model(plain_encoder())
    net.finer = Prototypes(4, 9) if finer else None
    exact = copy.deepcopy(net).double()
    x = torch.randn(50, 2)
    with torch.autocast("cpu", torch.bfloat16):
        latent = net.encoder(x)
        (ours,) = net.heads([latent])
    assert latent.dtype == torch.bfloat16  # the encoder is what half precision is for
    (true,) = exact.heads([latent.double()])
    for part, wanted in zip(ours, true, strict=True):
        if wanted is not None:
            assert part.dtype == torch.float32
            torch.testing.assert_close(part.double(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [lambda: None, plain_encoder])
def test_a_model_of_half_precision_weights_computes_in_them(make):
    net = model(make()).bfloat16()
    x = torch.randn(50, 2).bfloat16()
    assert {part.dtype for part in (*net(x), *net.energy.with_score(x))} == {torch.bfloat16}


def test_an_encoder_with_a_closed_form_and_its_copy_without_one_have_the_same_score():
    net = model().double()
    hidden = copy.deepcopy(net)
    hidden.encoder = nn.Sequential(net.encoder)  # the same layers; Sequential has no `along`
    x = torch.randn(7, 2, dtype=torch.float64)
    for ours, theirs in zip(net.energy.with_score(x), hidden.energy.with_score(x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_an_encoder_of_images_works(g):
    class Pool(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 3, 3, padding=1)

        def forward(self, x):
            return torch.tanh(self.conv(x)).mean(dim=(2, 3))

    net = model(Pool())
    x = torch.randn(4, 1, 6, 6)
    energy, s = net.energy.with_score(x)
    assert energy.shape == (4,)
    assert s.shape == x.shape
    moved, _ = Langevin(noise=0.1, steps=2).run(net.energy, x, g)
    assert moved.shape == x.shape
    assert net(x).logits.shape == (4, 5)


def test_outputs_are_the_chain_of_encoder_projector_and_prototypes():
    net = model().eval()
    x = torch.randn(7, 2)
    out = net(x)
    torch.testing.assert_close(out.latent, net.encoder(x))
    torch.testing.assert_close(out.embedding, net.projector(out.latent))
    torch.testing.assert_close(out.logits, net.prototypes(out.embedding))


@pytest.mark.parametrize("second", [None, "second"])
def test_in_evaluation_views_together_are_the_views_one_by_one(second):
    net = model(second=second and plain_encoder()).eval()
    views = [torch.randn(n, 2) for n in (7, 7, 4)]
    for together, view in zip(net.heads([net.encoder(view) for view in views]), views, strict=True):
        for a, b in zip(together[:3], net(view)[:3], strict=True):
            torch.testing.assert_close(a, b)


def test_in_training_each_view_has_its_own_batch_norm_statistics():
    net = model()
    a, b = torch.randn(16, 2), 3 * torch.randn(16, 2) + 5
    one_by_one, stacked = copy.deepcopy(net), copy.deepcopy(net)
    together = net.heads([net.encoder(a), net.encoder(b)])
    apart = [one_by_one(a), one_by_one(b)]
    for x, y in zip(together, apart, strict=True):
        torch.testing.assert_close(x.embedding, y.embedding)
    for x, y in zip(net.buffers(), one_by_one.buffers(), strict=True):
        torch.testing.assert_close(x, y)  # the running statistics saw two batches, not one of twice the size
    assert int(net.projector.net[1].num_batches_tracked) == 2
    mixed = stacked(torch.cat([a, b])).embedding[:16]
    assert (mixed - together[0].embedding).abs().max() > 0.1  # so the two ways really differ


def test_one_view_says_nothing_to_another_views_statistics():
    net = model()
    a = torch.randn(16, 2)
    first = net.heads([net.encoder(a), net.encoder(torch.randn(16, 2))])[0].embedding
    second = net.heads([net.encoder(a), net.encoder(100 * torch.randn(16, 2))])[0].embedding
    torch.testing.assert_close(first, second)


def test_sampling_walking_and_evaluating_the_energy_leave_batch_norm_alone(g):
    net = model().train()
    x = torch.randn(16, 2)
    before = buffers_of(net)
    assert before  # there is something to disturb
    net.energy(x)
    net.energy.with_score(x)
    Langevin(noise=0.1, steps=3, metropolis=True).run(net.energy, x, g)
    manifold_walk(net.energy, x, g, steps=3)
    assert same(before, buffers_of(net))
    net(x)
    assert not same(before, buffers_of(net))  # while a forward in training does update them


def test_the_energy_follows_training_and_its_snapshot_does_not():
    net = model()
    x = torch.randn(9, 2)
    live, frozen = net.energy, net.energy.snapshot()
    before = live(x).detach()
    assert torch.equal(frozen(x), before)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    live(x).sum().backward()
    optimiser.step()
    assert (live(x) < before).any()
    assert not torch.allclose(live(x), before)
    assert torch.equal(frozen(x), before)
    torch.testing.assert_close(frozen.with_score(x)[0], before)


def test_a_snapshot_takes_no_gradient_and_does_not_freeze_the_model():
    net = model()
    frozen = net.energy.snapshot()
    x = torch.randn(9, 2)
    assert not frozen(x).requires_grad
    assert not any(p.requires_grad for p in frozen.encoder.parameters())
    assert all(p.requires_grad for p in net.parameters())


def test_a_second_encoder_parts_the_energy_from_the_clusters():
    net = model(second=MLP(2, (8,), 3))
    out = net(torch.randn(16, 2))
    assert touched(out.logits.square().sum(), net.encoder)
    assert not touched(out.logits.square().sum(), net.density.encoder)
    assert touched(out.energy.sum(), net.density.encoder)
    assert not touched(out.energy.sum(), net.encoder)
    assert not touched(out.energy.sum(), net.projector)


def test_with_one_encoder_both_the_energy_and_the_clusters_teach_it():
    net = model()
    out = net(torch.randn(16, 2))
    assert touched(out.logits.square().sum(), net.encoder)
    assert touched(out.energy.sum(), net.encoder)


def test_the_energy_of_two_encoders_is_that_of_the_second():
    net = model(second=MLP(2, (8,), 3))
    x = torch.randn(6, 2)
    by_hand = -(net.density.encoder(x) @ net.density.direction)
    torch.testing.assert_close(net(x).energy, by_hand)
    torch.testing.assert_close(net.energy(x), by_hand)
    torch.testing.assert_close(net.energy.with_score(x)[0], by_hand)


def test_the_direction_is_a_parameter_drawn_from_its_stream(seeded):
    def draw(seed):
        head = EnergyHead(400, generator=seeded(seed))
        return Model(MLP(2, (4,), 400), nn.Identity(), nn.Identity(), density=head).density.direction

    u = draw(0)
    assert isinstance(u, nn.Parameter)
    assert torch.equal(u, draw(0))
    assert not torch.equal(u, draw(1))
    assert u.abs().max() <= 400**-0.5
    assert abs(u.norm().item() - 3**-0.5) < 0.05  # 400 coordinates of variance 1 / (3 * 400)


def test_a_model_without_a_density_says_all_but_an_energy():
    net = Model(MLP(2, (8,), 3), Projector(3, 6, 4), Prototypes(4, 5))
    out = net(torch.randn(9, 2))
    assert out.energy is None
    assert out.logits.shape == (9, 5)
    assert not any(name.startswith("density") for name in net.state_dict())
    with pytest.raises(TypeError, match="this model has no energy: it was built without a density"):
        net.energy  # noqa: B018


def test_who_asks_for_clusters_asks_no_density():
    net = model(second=MLP(2, (8,), 3)).eval()
    net.density.encoder.register_forward_hook(lambda *args: pytest.fail("the energy was computed"))
    x = torch.randn(9, 2)
    seen = net.clustered(x)
    torch.testing.assert_close(seen.latent, net.encoder(x))
    torch.testing.assert_close(seen.logits, net.prototypes(net.projector(seen.latent)))
    assert seen.finer is None

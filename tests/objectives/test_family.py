"""The terms of the family: each is its loss of the data and a look, and a run of each learns or keeps its state."""

import math

import pytest
import torch
import torch.nn.functional as F

from gedi import losses
from gedi.config import override, parse
from gedi.fitting import prepare, train
from gedi.objectives.cor_info_max import CorInfoMax
from gedi.objectives.cpc import Cpc
from gedi.objectives.deep_cluster import DeepCluster, named_centres
from gedi.objectives.k_shot import KShot
from gedi.objectives.mec import Mec
from gedi.objectives.nt_xent import NtXent
from gedi.objectives.objective import Seen
from gedi.objectives.proto_cpc import ProtoCpc
from gedi.objectives.uniformity import Uniformity
from gedi.objectives.vicreg import Vicreg
from gedi.objectives.w_mse import WMse
from gedi.presets import preset
from gedi.types import Clustered

TINY = ["data.n_train=300", "data.n_test=100", "stage1.iterations=0", "walk.steps=2", "n_init=1", "log_every=5"]


def seen(n=12, d=5, looks=("view", "walk", "view2", "view3"), seed=0):
    g = torch.Generator().manual_seed(seed)

    def one():
        z = F.normalize(torch.randn(n, d, generator=g, dtype=torch.float64), dim=1)
        return Clustered(z, z, torch.randn(n, 4, generator=g, dtype=torch.float64))

    return Seen(one(), {look: one() for look in looks}, progress=0.5)


@pytest.mark.parametrize("look", ["view", "walk"])
@pytest.mark.parametrize(
    ("term", "loss"),
    [
        (NtXent, lambda a, b: losses.nt_xent(a, b, 0.2)),
        (Cpc, lambda a, b: losses.cpc(a, b, 0.1)),
        (WMse, losses.w_mse),
        (Mec, losses.mec),
        (Vicreg, lambda a, b: losses.vicreg(math.sqrt(5) * a, math.sqrt(5) * b)),
        (CorInfoMax, losses.cor_info_max),
    ],
)
def test_a_term_is_its_loss_of_the_data_and_the_look_it_names(term, loss, look):
    s = seen()
    assert term(weight=1, look=look).looks == (look,)
    torch.testing.assert_close(term(weight=1, look=look)(s), loss(s.data.embedding, s.looks[look].embedding))


def test_symbols_are_held_against_those_of_a_look_and_shares_against_equal_ones(context):
    s = seen()
    found = ProtoCpc(weight=1, look="walk").bind(context())(s)
    torch.testing.assert_close(found, losses.proto_cpc(s.data.logits, s.looks["walk"].logits))
    p = s.both().softmax(dim=1).mean(dim=0)
    torch.testing.assert_close(Uniformity(weight=1).bind(context())(s), -p.log().sum())


def test_a_k_shot_term_has_as_many_views_as_shots():
    s, term = seen(), KShot(weight=1, shots=3)
    assert term.looks == ("view", "view2", "view3")
    shots = [s.looks[name].embedding for name in term.looks]
    torch.testing.assert_close(term(s), losses.k_shot(s.data.embedding, *shots))


def test_every_view_of_a_k_shot_run_is_another():
    run = prepare(parse(override(preset("moons"), [*TINY, "method=k-shot", "stage2.iterations=3"])))
    leg = run.trainer.course.leg
    looks = run.trainer._next_batch(leg.stage, progress=0.0).looks
    assert list(looks) == ["view", "view2", "view3"]
    assert not torch.equal(looks["view"], looks["view2"])
    assert not torch.equal(looks["view2"], looks["view3"])


def test_covariances_run_on_from_step_to_step(context):
    term = CorInfoMax(weight=1, keep=0.75).bind(context(embedding=5))
    carried, moments = term.begin(), []
    for step in range(5):
        s = seen(seed=step)
        value = term(s, carried)
        expected = losses.cor_info_max(s.data.embedding, s.looks["view"].embedding)
        assert torch.allclose(value, expected) == (step == 0)  # later on the past has a word
        carried = term.after(s, carried)
        moments.append(torch.cov(s.data.embedding.t(), correction=0))
        if step < 4:  # as many batches as it takes to be forgotten count alike
            torch.testing.assert_close(carried["covariances"][0], torch.stack(moments).mean(0))
    before = torch.stack(moments[:4]).mean(0)
    torch.testing.assert_close(carried["covariances"][0], 0.75 * before + 0.25 * moments[4])


def groups(n=200, clusters=4, d=5, seed=0):
    """Well apart groups on the sphere, and which each point is of."""
    g = torch.Generator().manual_seed(seed)
    own = torch.randint(0, clusters, (n,), generator=g)
    return F.normalize(torch.eye(d)[own] + 0.05 * torch.randn(n, d, generator=g), dim=1), own


def test_centres_have_the_names_that_their_points_have():
    rows, own = groups()
    names = torch.tensor([2, 0, 3, 1])
    wrong = torch.where(torch.arange(len(own)) % 10 == 0, 0, names[own])  # a tenth is called otherwise
    centres = named_centres(rows, wrong, 4, seed=1)
    assert torch.equal(torch.cdist(rows, centres).argmin(dim=1), names[own])


def test_fewer_points_than_centres_are_no_trouble():
    rows, own = groups(3)
    assert named_centres(rows, own, 4, seed=0).isfinite().all()


def test_pseudo_labels_are_refreshed_once_the_memory_is_new(context):
    term = DeepCluster(weight=1, memory=100).bind(context(embedding=5))
    carried, refreshed = term.begin(), []
    assert term(_group_batch(0), carried) == 0  # nothing is known yet
    for step in range(20):
        (before,) = carried["centres"]
        carried = term.after(_group_batch(step), carried)
        refreshed += [step] if not torch.equal(before, carried["centres"][0]) else []
    assert refreshed == [0, 1, 3, 7, 12, 17]  # 20 points a step: after 20, 40, 80, 160, and then every 100
    s = _group_batch(99)
    assigned = torch.cdist(s.data.embedding, carried["centres"][0]).argmin(dim=1)
    expected = (
        losses.deep_cluster(s.data.logits, assigned) + losses.deep_cluster(s.looks["view"].logits, assigned)
    ) / 2
    torch.testing.assert_close(term(s, carried), expected)


def _group_batch(seed):
    rows, own = groups(20, seed=seed)
    logits = F.one_hot(own, 4).float()
    return Seen(Clustered(rows, rows, logits), {"view": Clustered(rows, rows, logits)}, progress=0.5)


@pytest.mark.parametrize("stop", [3, 11])
@pytest.mark.parametrize("method", ["deep-cluster", "cor-info-max"])
def test_a_stopped_run_goes_on_with_what_the_term_carries_bit_for_bit(method, stop, tmp_path):
    settings = [*TINY, f"method={method}", "stage2.iterations=15", "stage2.batch_size=64"]

    def run():
        return prepare(parse(override(preset("moons"), settings)))

    whole, first, second = run(), run(), run()
    train(whole)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    for a, b in zip(whole.trainer.model.parameters(), second.trainer.model.parameters(), strict=True):
        assert torch.equal(a, b)

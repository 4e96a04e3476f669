"""A real training on images that come with scikit-learn: clusters without labels, and a density beside them."""

import pytest
import torch

from gedi.config import override, parse
from gedi.evaluation import ood_aurocs, ood_scores
from gedi.fitting import measured_run, prepare, train
from gedi.presets import preset
from gedi.training.step import make_batch


@pytest.mark.slow
def test_digits_are_clustered_without_labels_with_the_help_of_their_density():
    run = prepare(parse(override(preset("digits"), ["seed=7"])))
    events = []
    run.trainer.on_log = lambda record: events.append(record) if "event" in record else None
    train(run)
    metrics, _ = measured_run(run)
    assert metrics["nmi"] >= 0.9
    assert metrics["accuracy"] >= 0.9
    assert metrics["clusters_used"] == 10
    assert [event["iteration"] for event in events] == [240, 400, 560]
    assert events[0]["prototypes"] == "redrawn"  # the first merging gives the symbols their prototypes
    assert 0.6 < metrics["walk_reach"] < 1.2  # two steps, of six tenths each
    knows_noise(run)


@pytest.mark.slow
def test_an_energy_of_digits_gives_samples_as_dense_as_data_and_knows_noise():
    run = prepare(parse(override(preset("digits-energy"), ["seed=7", "stage2.iterations=0"])))
    train(run)
    assert abs(measured_run(run)[0]["energy_gap"]) < 1
    knows_noise(run)


def knows_noise(run):
    energy, test = run.trainer.density.energy(run.trainer.model), run.data.test[:]
    noise = torch.rand(test.shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert ood_aurocs(ood_scores(energy, test), ood_scores(energy, noise))["auroc_log_density"] > 0.95


SMALL = ("data.limit=200", "model.width=4", "stage1.iterations=2", "stage2.iterations=4", "stage2.batch_size=32",
         "density.buffer=64", "density.steps=2", "walk.steps=2")  # fmt: skip


def test_a_composed_walk_is_augmented_and_is_no_view_of_its_own():
    """With an augmentation that changes nothing but a little noise, the view is the walk's end."""
    still = ("augment.rotation=0", "augment.shear=0", "augment.scale=0", "augment.shift=0", "augment.noise=1e-6")
    run = prepare(parse(override(preset("digits-energy"), [*SMALL, *still, "walk.composed=true"])))
    stage, trainer = run.trainer.course.legs[1].stage, run.trainer
    x, walked = trainer.train[:32], trainer.train[32:64]
    batch, _ = make_batch(stage, trainer.model, x, walked, trainer.state.density, trainer.streams.own, 0.5)
    assert set(batch.looks) == {"view"}
    torch.testing.assert_close(batch.looks["view"], walked, atol=1e-4, rtol=0)
    torch.testing.assert_close(batch.anchor, x, atol=1e-4, rtol=0)


def test_a_composed_walk_trains_and_a_weight_on_a_walk_view_beside_it_is_refused():
    run = prepare(
        parse(override(preset("digits-energy"), [*SMALL, "walk.composed=true", "walk.refresh=2", "walk.relax=2"]))
    )
    train(run)
    assert all(torch.isfinite(parameter).all() for parameter in run.trainer.model.parameters())
    beside = "stage2.terms.agreement_walk={kind: agreement, look: walk, weight: 1}"
    with pytest.raises(ValueError, match="a composed walk is part of the augmented view"):
        prepare(parse(override(preset("digits-energy"), ["walk.composed=true", beside])))


def test_images_of_the_test_part_are_never_augmented():
    run = prepare(parse(override(preset("digits-energy"), [*SMALL])))
    train(run)
    model = run.trainer.model
    with torch.no_grad():
        predicted = model(run.data.test[:]).logits.argmax(dim=1)
    first, again = (measured_run(run)[0] for _ in range(2))
    assert first["nmi"] == again["nmi"]
    assert first["accuracy"] == again["accuracy"]
    assert first["clusters_used"] == len(predicted.unique())

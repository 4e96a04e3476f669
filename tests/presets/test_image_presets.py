"""The image presets: the paper's table of hyperparameters, field by field, and that every method can be built."""

import copy
import math

import pytest
import torch

from gedi.config import override, parse
from gedi.data import Dataset, StoredImages
from gedi.errors import UserError
from gedi.fitting import prepare
from gedi.methods import METHODS
from gedi.presets import PRESETS, preset
from gedi.presets.energies import ENERGY_PRESETS
from gedi.presets.images import IMAGE_PRESETS
from gedi.sources import pixels_of

COLUMNS = ("svhn", "cifar10", "cifar100")
#: The paper's table "Hyperparameters", rows as printed; the last column, Addition, belongs to other presets.
TABLE = {
    "Color jitter prob.": (0.1, 0.1, 0.1),
    "Gray scale prob.": (0.1, 0.1, 0.1),
    "Random crop": (True, True, True),
    "Additive Gauss. noise (std)": (0.03, 0.03, 0.03),
    "Random horizontal flip": (False, True, True),
    "SGLD iters": (20, 20, 20),
    "Buffer size": (10_000, 10_000, 10_000),
    "Reinit. frequency": (0.05, 0.05, 0.05),
    "SGLD step-size": (1, 1, 1),
    "SGLD noise": (0.01, 0.01, 0.01),
    "Batch size": (64, 64, 64),
    "Iters_1": (100_000, 70_000, 70_000),
    "Iters_2": (100_000, 70_000, 70_000),
    "Adam beta_1": (0.9, 0.9, 0.9),
    "Adam beta_2": (0.999, 0.999, 0.999),
    "Learning rate": (1e-4, 1e-4, 1e-4),
    "DAM epsilon": (0.03, 0.03, 0.03),
    "DAM T": (10, 10, 10),
    "weight of -CE(p, p_Psi)": (1, 1, 1),
    "weight of L_NF": ("1/batch", "1/batch", "1/batch"),
    "weight of L_DI(Theta, T)": (1000, 1000, 1000),
    "weight of L_DI(Theta, p_Psi)": (500, 500, 500),
    "weight of L_NeSY": (0, 0, 0),  # printed as "-"
    # the text around it
    "F": (128, 128, 256),
    "neurons of proj": ("2F", "2F", "2F"),
    "outputs of proj": ("F", "F", "F"),
    "clusters": (10, 10, 100),
    "noise on the data of JEM": (0.03, 0.03, 0.03),
}
#: Where each row stands in a config; "Training 2" is "idem".
PLACES = {
    "Color jitter prob.": ("augment.jitter",),
    "Gray scale prob.": ("augment.grayscale",),
    "Random crop": ("augment.crop",),
    "Additive Gauss. noise (std)": ("augment.noise",),
    "Random horizontal flip": ("augment.flip",),
    "SGLD iters": ("density.steps",),
    "Buffer size": ("density.buffer",),
    "Reinit. frequency": ("density.reinit",),
    "SGLD step-size": ("density.step_size",),
    "SGLD noise": ("density.noise",),
    "Batch size": ("stage1.batch_size", "stage2.batch_size", "density.chains"),
    "Iters_1": ("stage1.iterations",),
    "Iters_2": ("stage2.iterations",),
    "Adam beta_1": ("stage1.betas.0", "stage2.betas.0"),
    "Adam beta_2": ("stage1.betas.1", "stage2.betas.1"),
    "Learning rate": ("stage1.learning_rate", "stage2.learning_rate"),
    "DAM epsilon": ("walk.radius",),
    "DAM T": ("walk.steps",),
    "weight of -CE(p, p_Psi)": ("stage1.density.generative", "stage2.density.generative"),
    "weight of L_NF": ("stage2.terms.negative_free.weight",),
    "weight of L_DI(Theta, T)": ("stage2.terms.swapped.weight",),
    "weight of L_DI(Theta, p_Psi)": ("stage2.terms.swapped_walk.weight",),
    "weight of L_NeSY": ("stage2.terms.constraint.weight",),
    "F": ("model.width",),
    "neurons of proj": ("model.projector",),
    "outputs of proj": ("model.embedding",),
    "clusters": ("model.clusters",),
    "noise on the data of JEM": ("density.data_noise",),
}
#: What a literal run needs and the paper does not say, or says in formulas: the whole rest of these presets.
SETTLED = {
    "n_init": 1,
    "guard.attempts": 0,
    "model.encoder": "resnet8",
    "model.temperature": 0.1,
    "density.metropolis": False,
    "density.teleports": 0,
    "density.margin": 0.0,
    "density.clamp": False,
    "walk.energy": "live",  # walks on the model of the moment, by every batch
    "walk.refresh": 1,
    "walk.direction": "constant",  # the displacement is drawn once
    "walk.corrector": 0.0,
    "augment.crop": 4,
    "augment.both": True,
    **{f"{place}.{key}": 0.05 for key in ("epsilon_start", "epsilon")
       for place in ("parts.swapped", "stage2.terms.swapped", "stage2.terms.swapped_walk")},
    **{f"{stage}.{key}": value for stage in ("stage1", "stage2")
       for key, value in (("warmup", 0), ("final", 1.0), ("average", 0.0), ("density.denoising", None))},
}  # fmt: skip
SCALES = {"svhn": (0.45, 0.19), "cifar10": (0.48, 0.25), "cifar100": (0.48, 0.27)}
#: The two more that borrow a column, and where they leave it.
BORROWED = {
    "mnist-paper": {"data.name": "mnist", "augment.flip": False},
    "fashion-mnist-paper": {"data.name": "fashion-mnist"},
}
ADDITION = {"data.mean": 0.1, "data.std": 0.28, "data.pad": 2, "data.channels": 3, "augment.noise": 0.3}

LAPTOP = ("mnist", "fashion-mnist", "cifar10", "cifar100", "svhn")
SHAPES = {"digits": (1, 8, 8), "mnist": (1, 28, 28), "fashion-mnist": (1, 28, 28)}  # the others are colour


def leaves(settings, prefix=""):
    """Dotted keys and values of nested settings; a tuple's entries are keys of their own."""
    if isinstance(settings, list | tuple):
        settings = dict(enumerate(settings))
    if not isinstance(settings, dict):
        return {prefix: settings}
    found = {}
    for key, value in settings.items():
        found |= leaves(value, f"{prefix}.{key}" if prefix else str(key))
    return found


def expected(column):
    """Every setting of a column that is no default, and some that are."""
    i = COLUMNS.index(column)
    said = {name: values[i] for name, values in TABLE.items()}
    width, batch = said["F"], said["Batch size"]
    said |= {"neurons of proj": 2 * width, "outputs of proj": width, "weight of L_NF": 1 / batch}
    wanted = {place: said[name] for name, places in PLACES.items() for place in places}
    crop = wanted.pop("augment.crop")
    assert bool(SETTLED["augment.crop"]) == crop
    assert wanted.pop("stage2.terms.constraint.weight") == 0  # then it is not among the terms
    mean, std = SCALES[column]
    return wanted | SETTLED | {"data.name": column, "data.mean": mean, "data.std": std, "preset": f"{column}-paper"}


def differences(settings, column):
    """Where settings leave the paper's column: full configs are compared, so that no default slips in."""
    wanted, found = leaves(parse({}).model_dump()) | expected(column), leaves(parse(settings).model_dump())
    return {key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key)}


OTHER = {
    "data.name": "moons", "model.encoder": "conv", "walk.energy": "stage1", "walk.direction": "fresh",
    "preset": "other", "density.kind": "none", "stage2.terms.swapped_walk.kind": "agreement",
    "stage2.terms.swapped_walk.look": "view",
}  # fmt: skip


def other(value):
    """A number that is not this one."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else 0.9 * value or 0.5


def test_the_rows_all_have_a_place():
    assert TABLE.keys() == PLACES.keys()
    assert {len(values) for values in TABLE.values()} == {len(COLUMNS)}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", sorted(TABLE))
def test_each_field_of_the_papers_table_is_in_its_preset(row, column):
    config = leaves(parse(preset(column, "paper")).model_dump())
    value = TABLE[row][COLUMNS.index(column)]
    value = {"1/batch": 1 / 64, "F": config["model.width"], "2F": 2 * config["model.width"]}.get(value, value)
    for place in PLACES[row]:
        found = config.get(place, 0) if place == "stage2.terms.constraint.weight" else config[place]
        assert (bool(found) if isinstance(value, bool) else found) == value, place


@pytest.mark.parametrize("column", COLUMNS)
def test_a_paper_preset_is_the_papers_column_and_nothing_else(column):
    assert differences(preset(column, "paper"), column) == set()


@pytest.mark.parametrize("column", COLUMNS)
def test_a_change_of_any_field_is_noticed(column):
    """The test of the test: every leaf of the preset is changed, one at a time."""
    settings = preset(column, "paper")
    for key, value in leaves(settings).items():
        changed = copy.deepcopy(settings)
        place, (*path, last) = changed, key.split(".")
        for part in path:
            if isinstance(place[part], tuple):
                place[part] = list(place[part])
            place = place[part]
        place[int(last) if last.isdigit() else last] = OTHER[key] if key in OTHER else other(value)
        assert noticed(changed, column, key), key


def noticed(settings, column, key):
    """That a setting was changed: it and no other, but for what a setting of a kind means to each term of it."""
    if key == "density.kind":
        with pytest.raises(UserError, match=r"unknown key 'density.chains'"):
            parse(settings)
        return True
    found = differences(settings, column)
    if key == "stage2.terms.swapped_walk.kind":
        return key in found
    echoes = {key.replace("parts.swapped", f"stage2.terms.{term}") for term in ("swapped", "swapped_walk")}
    return found == {key} | echoes


@pytest.mark.parametrize("name", sorted(BORROWED))
def test_mnist_borrows_the_column_of_cifar10_and_the_look_of_addition(name):
    wanted = leaves(parse(preset("cifar10", "paper")).model_dump()) | ADDITION | {"preset": name} | BORROWED[name]
    assert leaves(parse(preset(name)).model_dump()) == wanted
    assert preset(name.removesuffix("-paper"), "paper") == preset(name)


@pytest.mark.parametrize(
    ("name", "base", "changes"),
    [
        (
            "fashion-mnist",
            "mnist",
            {
                **{"data.name": "fashion-mnist", "augment.rotation": 5.0, "augment.flip": True},
                **{"augment.light": 0.7},
            },
        ),
        (
            "digits",
            "mnist",
            {
                **{"augment.rotation": 10.0, "augment.shear": 0.2, "augment.scale": 0.1, "augment.shift": 0.7},
                **{"data.name": "digits", "stage2.iterations": 800, "stage2.average": 0.0},
            },
        ),
        ("cifar100", "cifar10", {"data.name": "cifar100", "model.clusters": 100, "model.finer": 300}),
        ("svhn", "cifar10", {"data.name": "svhn", "augment.flip": False}),
        (
            "cifar10",
            "mnist",
            {
                **{f"augment.{name}": 0.0 for name in ("rotation", "shear", "scale", "shift")},
                **{"augment.resized": 0.3, "augment.flip": True, "augment.jitter": 0.8, "augment.grayscale": 0.2},
                **{"data.name": "cifar10", "model.encoder": "resnet8", "model.width": 32, "model.stem": 2},
                **{"augment.noise": 0.05, "stage2.iterations": 1500, "density.reach": 0.3},
            },
        ),
    ],
)
def test_the_laptop_presets_differ_in_what_they_say(name, base, changes):
    wanted = leaves(parse(preset(base)).model_dump()) | changes | {"preset": name}
    assert leaves(parse(preset(name)).model_dump()) == wanted


def test_every_image_preset_is_known_and_has_both_profiles():
    assert {"digits"} | set(LAPTOP) | {f"{name}-paper" for name in LAPTOP} == set(IMAGE_PRESETS)
    assert {f"{name}-energy" for name in ("digits", *LAPTOP)} == set(ENERGY_PRESETS)
    with pytest.raises(UserError, match="no paper profile"):
        preset("digits", "paper")
    assert set(IMAGE_PRESETS | ENERGY_PRESETS) <= set(PRESETS)
    assert all(preset(name, "laptop") == preset(name) for name in LAPTOP)


def random_images(config, n=160):
    """Bytes of the shape of the data set's own, with a label of every kind."""
    shape = (n, *SHAPES.get(config.data.name, (3, 32, 32)))
    stored = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images = StoredImages(stored, pixels_of(config.data))
    labels = torch.arange(n) % config.model.clusters
    return Dataset(config.data.name, images, images, labels, labels)


def prepared(name, *settings):
    config = parse(override(preset(name), settings))
    if config.density.kind == "energy":
        config = parse(override(preset(name), ["density.buffer=128", *settings]))
    return prepare(config, data=random_images(config))


@pytest.mark.parametrize(("name", "count"), [("svhn", 1_037_184), ("cifar10", 1_037_184), ("cifar100", 4_138_752)])
def test_the_encoders_have_the_papers_size_and_heads(name, count):
    model = prepared(f"{name}-paper").trainer.model
    assert sum(p.numel() for p in model.encoder.parameters()) == count
    width = 256 if name == "cifar100" else 128
    linear = [layer for layer in model.projector.modules() if isinstance(layer, torch.nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in linear] == [(width, 2 * width), (2 * width, width)]
    norms = [layer for layer in model.projector.modules() if isinstance(layer, torch.nn.BatchNorm1d)]
    assert [layer.num_features for layer in norms] == [2 * width, width]  # "in all layers"
    out = model.eval()(torch.rand(2, 3, 32, 32))
    assert out.logits.shape == (2, 100 if name == "cifar100" else 10)
    torch.testing.assert_close(out.embedding.norm(dim=1), torch.ones(2))
    assert not any(isinstance(layer, torch.nn.BatchNorm2d) for layer in model.modules())


FULL = {"generative", "negative_free", "swapped", "swapped_walk"}
EBCLR = {"stage2": {"generative", "penalty", "contrastive"}}
PAPER_TERMS = {
    "ebclr": EBCLR,
    "gedi": {"stage1": {"generative"}, "stage2": FULL},
    "jem": {"stage1": {"generative"}, "stage2": {"generative"}},
    "no-nf": {"stage1": {"generative"}, "stage2": FULL - {"negative_free"}},
    "no-nf-no-train-1": {"stage2": FULL - {"negative_free"}},
    "no-nf-2-enc": {"stage1": {"generative"}, "stage2": FULL - {"negative_free"}},
    "gedi-no-sinkhorn": {
        "stage1": {"generative"},
        "stage2": FULL - {"swapped", "swapped_walk"} | {"agreement", "agreement_walk", "uniformity"},
    },
}
DENSITY, CLUSTERS = {"generative", "penalty"}, {"agreement", "balance", "finer"}
ENERGY_TERMS = {
    "ebclr": EBCLR,
    "gedi": {"stage1": DENSITY, "stage2": CLUSTERS},
    "jem": {"stage1": DENSITY},
    "no-nf-no-train-1": {"stage2": CLUSTERS},
    "gedi-no-sinkhorn": {"stage1": DENSITY, "stage2": CLUSTERS - {"balance"} | {"uniformity"}},
}
WALKED_TERMS = {
    "ebclr": EBCLR,
    "gedi": {"stage1": {"denoising"}, "stage2": CLUSTERS},
    "gedi-no-sinkhorn": {"stage1": {"denoising"}, "stage2": CLUSTERS - {"balance"} | {"uniformity"}},
}
TERMS = {"paper": PAPER_TERMS, "energy": ENERGY_TERMS, "walked": WALKED_TERMS}
ALIKE = {method: {"stage2": set(terms)} for method, *terms in
         (("barlow", "barlow"), ("swav", "swapped"), ("supervised", "supervised"), ("simclr", "nt_xent"),
          ("k-shot", "k_shot"), ("proto-cpc", "proto_cpc"), ("deep-cluster", "deep_cluster"), ("vicreg", "vicreg"),
          ("w-mse", "w_mse"), ("mec", "mec"), ("cor-info-max", "cor_info_max"),
          ("cplearn", "agreement", "uniformity"))}  # fmt: skip


def kind_of(name):
    return next((kind for kind in ("paper", "energy") if name.endswith(f"-{kind}")), "walked")


def refused(name, method):
    """What is said where a method makes nothing, or nothing new, of a preset."""
    kind = kind_of(name)
    if method == "logic-alone":
        return "needs a constraint: see"
    if method == "no-constraint" or (method in ("no-nf", "no-nf-2-enc") and kind != "paper"):
        return f"method {method} changes nothing in preset {name}, which trains"
    if kind == "walked" and method == "jem":
        return f"leaves this preset nothing to train: .*; use preset {name}-energy, whose density has samples"
    if kind == "walked" and method == "no-nf-no-train-1":
        return "walks follow a density, and no stage trains it"
    return None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", sorted(IMAGE_PRESETS | ENERGY_PRESETS))
def test_every_method_is_built_from_every_image_preset(name, method):
    said = refused(name, method)
    if said:
        with pytest.raises(UserError, match=said):
            prepared(name, f"method={method}")
        return
    kind = kind_of(name)
    run = prepared(name, f"method={method}")
    stages = [leg.stage for leg in run.trainer.course.legs]
    terms = {stage.name: {*stage.density_weights, *stage.terms} for stage in stages}
    assert terms == (TERMS[kind] | ALIKE)[method]
    density = run.trainer.model.density
    assert (density is None) == (method in ALIKE)
    if kind != "walked":
        second = density is not None and density.encoder is not None
        assert second == (method == "no-nf-2-enc" or (kind == "energy" and method not in ("jem", "ebclr", *ALIKE)))
    walked = kind == "walked" and method in ("gedi", "gedi-no-sinkhorn")
    assert [stage.walk is not None for stage in stages][-1] == walked or kind == "paper"
    assert run.clusters == (100 if name.startswith("cifar100") else 10)
    # the paper's digits are padded to 32 x 32, in three channels
    shape = SHAPES.get(name.removesuffix("-energy"), (3, 32, 32))
    assert run.data.train.shape[1:] == ((3, 32, 32) if kind == "paper" else shape)
    assert (run.trainer.labels is not None) == (method == "supervised")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["svhn", "cifar10", "cifar100", "mnist", "fashion-mnist"])
def test_a_real_step_of_each_stage_at_the_papers_full_size(name):
    """Twenty moves of 64 chains, ten steps of the walk. Of F = 256 stage 2 alone: it does all that stage 1 does."""
    only_second = name == "cifar100"
    first = ["stage1.iterations=0"] if only_second else ["stage1.iterations=1"]
    run = prepared(f"{name}-paper", *first, "stage2.iterations=1", "log_every=1")
    trainer, lines, seen = run.trainer, [], {}
    parts = ("encoder", "projector", "prototypes", "density")

    def weights():
        named = {name: p.detach().flatten() for name, p in trainer.model.named_parameters()}
        return {part: torch.cat([p for name, p in named.items() if name.startswith(part)]) for part in parts}

    def log(record):
        lines.append(record)
        seen[record["stage"]] = weights()

    trainer.on_log = log
    before = weights()
    trainer.fit()
    assert [line["stage"] for line in lines] == (["stage2"] if only_second else ["stage1", "stage2"])
    for line in lines:
        wanted = {"generative"} if line["stage"] == "stage1" else FULL
        assert wanted <= line.keys()
        assert all(math.isfinite(value) for value in line.values() if isinstance(value, int | float))
    moved = {stage: {part for part in parts if not torch.equal(now[part], before[part])} for stage, now in seen.items()}
    assert moved.get("stage1", {"encoder", "density"}) == {"encoder", "density"}  # the density alone
    assert moved["stage2"] == set(parts)
    assert all(torch.isfinite(part).all() for part in weights().values())

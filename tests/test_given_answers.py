"""Answers given with the data: read, checked, trained on."""

import pytest
import torch

import gedi
from gedi.building import implied_shares
from gedi.config import override, parse
from gedi.data import Dataset
from gedi.errors import UserError
from gedi.fitting import prepare
from gedi.logic import Constraint
from gedi.objectives.constraint import Rule
from gedi.objectives.objective import Context, Seen
from gedi.presets import preset
from gedi.settings import merge
from gedi.types import Clustered

TOTAL = Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)


def groups(n=20, **more):
    g = torch.Generator().manual_seed(0)
    symbols = torch.randint(3, (n, 2), generator=g)
    points = torch.randn(2 * n, 2, generator=g) * 0.2 + 4 * torch.eye(3)[symbols.flatten(), :2]
    return Dataset(
        "mine", points, points, symbols.flatten(), symbols.flatten(), group_size=2, groups=n, **more
    ), symbols


def settings(**more):
    """The recipe of sums, for rows in the plane."""
    still = dict.fromkeys(("rotation", "shear", "scale", "shift", "elastic"), 0.0)
    wishes = {
        "stage2": {"iterations": 2, "batch_size": 8},
        "model": {"encoder": "mlp", "clusters": 3},
        "augment": still,
    }
    return parse(merge(merge(preset("digits-sum"), wishes), {"data": {"name": "moons"}, **more}))


def test_the_term_is_the_probability_of_what_was_observed():
    logits = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    both = Clustered(logits, logits, logits)
    answers = TOTAL.numbered([0, 3, None])
    term = Rule(weight=1).bind(Context(3, 8, 0.1, constraint=TOTAL, answers=answers))
    loss = term(Seen(both, {"view": both}, 0.5, 6, answers=answers))
    p = logits.softmax(1).view(3, 2, 3)
    three = p[1, 0, 1] * p[1, 1, 2] + p[1, 0, 2] * p[1, 1, 1]
    torch.testing.assert_close(loss, -(p[0, :, 0].prod().log() + three.log()) / 3)
    torch.autograd.gradcheck(
        lambda x: term(Seen(Clustered(x, x, x), {"view": Clustered(x, x, x)}, 0.5, 6, answers=answers)), logits
    )


def test_a_batch_brings_the_answers_of_its_groups():
    _, symbols = groups()
    data, _ = groups(answers=symbols.sum(dim=1).tolist())
    prepared = prepare(settings(), data=data, constraint=TOTAL)
    trainer = prepared.trainer
    batch = trainer._next_batch(trainer.course.leg.stage, 0.5)
    assert batch.answers.shape == (4,)
    drawn = trainer.batches.next(torch.Generator().manual_seed(3))
    assert torch.equal(trainer.answers[trainer.batches.groups_of(drawn)], symbols.sum(dim=1)[drawn[:8:2] // 2])


@pytest.mark.parametrize("kind", ["list", "some missing", "soft"])
def test_answers_of_every_kind_train(kind):
    _, symbols = groups()
    sums = symbols.sum(dim=1)
    answers = {
        "list": sums.tolist(),
        "some missing": [x if i % 2 else None for i, x in enumerate(sums.tolist())],
        "soft": 0.9 * torch.nn.functional.one_hot(sums, 5).float() + 0.02,
    }[kind]
    data, _ = groups(answers=answers)
    fitted = gedi.fit(data, settings(), constraint=TOTAL)
    assert fitted.predict(data.test).shape == (40,)


def test_points_in_memory_take_answers_beside_them():
    data, symbols = groups()
    sums = symbols.sum(dim=1)
    wishes = settings(constraint={"prior": "rule"})  # the shares of the symbols that the sums speak for
    same = gedi.fit(groups(answers=sums.tolist())[0], wishes, constraint=TOTAL)
    for answers in (sums, sums.tolist(), torch.nn.functional.one_hot(sums, 5).numpy()):
        fitted = gedi.fit(data.train, wishes, constraint=TOTAL, answers=answers)
        assert fitted.predict(data.train).shape == same.predict(data.test).shape
    with pytest.raises(UserError, match="stand in it"):
        gedi.fit(data, wishes, constraint=TOTAL, answers=sums)


def test_shares_follow_from_answers():
    symbols = torch.randint(3, (3000, 2), generator=torch.Generator().manual_seed(0)) * 2 % 3
    symbols[symbols == 2] = torch.where(torch.rand(int((symbols == 2).sum())) < 0.5, 0, 2)  # 0 twice as often
    shares = implied_shares(TOTAL, TOTAL.numbered(symbols.sum(dim=1).tolist()))
    assert float(shares.sum()) == pytest.approx(1)
    assert shares[0] > shares[1] > shares[2]


def test_what_does_not_fit_is_refused():
    data, symbols = groups()
    with pytest.raises(UserError, match="training needs one query"):
        gedi.fit(data, settings(), constraint=TOTAL)
    answered, _ = groups(answers=symbols.sum(dim=1).tolist())
    with pytest.raises(UserError, match="leave them out"):
        gedi.fit(answered, settings(), constraint=TOTAL["3"])
    wrong, _ = groups(answers=[17] * 20)
    with pytest.raises(UserError, match="answer 0 must be one of 0, 1, 2, 3, 4"):
        gedi.fit(wrong, settings(), constraint=TOTAL)
    with pytest.raises(UserError, match="one for each of 20 groups"):
        groups(answers=[1, 2])


def test_a_column_of_a_file_holds_the_answers(tmp_path):
    data, symbols = groups()
    sums = symbols.sum(dim=1).tolist()
    lines = ["x,y,total"]
    for i, (x, y) in enumerate(data.train.tolist()):
        lines.append(
            f"{x},{y},{sums[i // 2] if i % 2 == 0 and i > 5 else ''}"
        )  # on one row of each group; some have none
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(lines))
    wishes = settings(
        data={"name": "file", "path": str(path), "answer": "total", "group_size": 2},
        constraint={"rule": "sum", "variables": 2},
    )
    prepared = prepare(wishes)
    assert prepared.data.train.shape[1] == 2  # the answers are no points
    assert len(prepared.data.answers) == prepared.data.groups == 16
    assert set(prepared.data.answers) <= {None, 0, 1, 2, 3, 4}
    path.write_text(
        "\n".join([lines[0], *(f"{x},{i}" for i, x in enumerate(line.rsplit(",", 1)[0] for line in lines[1:]))])
    )
    with pytest.raises(UserError, match="rows of a group must have one answer"):
        prepare(wishes)


@pytest.mark.slow
def test_digits_learn_their_names_from_given_sums():
    wishes = override(preset("digits-sum"), ["stage2.iterations=250", "data.pairs=600", "seed=3"])
    prepared = prepare(parse(wishes))
    fitted = gedi.fit(prepared.data, wishes)
    accuracy = (fitted.predict(prepared.data.test.stored) == prepared.data.test_labels).float().mean()
    assert accuracy > 0.93

"""A few labels beside a rule: whose they are, when they come, and that nobody hides them."""

import pytest
import torch

from gedi.config import override, parse
from gedi.data import TASKS
from gedi.errors import UserError
from gedi.fitting import learn, prepare
from gedi.judge import judge
from gedi.logic import Constraint
from gedi.measures.answers import right_answers
from gedi.measures.namings import open_namings
from gedi.presets import preset
from gedi.runs import said_of_rule

SHORT = ("stage2.iterations=3", "model.width=4", "stage2.moves.align.restarts=3")
LABELS = (
    "data.label_these=1",
    "data.labelled=6",
    "stage2.terms.labelled.weight=1",
    "stage2.moves.labels.moments=[0.4]",
)


def prepared(*settings, name="digits-even-odd"):
    return prepare(parse(override(preset(name), [*SHORT, *settings])))


def test_the_symbol_that_tells_most_is_labelled_and_others_are_not():
    run = prepared(*LABELS)
    few = run.trainer.few
    assert few.labels.tolist() == [0] * 6
    assert torch.equal(run.data.train_labels[few.rows].long(), few.labels)
    assert len(torch.unique(few.rows)) == 6
    assert run.few == {0: 6}
    assert few.swaps == ((5, 6, 7, 8, 9, 0, 1, 2, 3, 4),) or len(few.swaps) == 1
    assert any("labels are used: 6 images of 0" in line for line in run.foretold)
    assert said_of_rule(run)["labels"] == 6


def test_labelled_images_come_at_the_end_of_every_batch():
    run = prepared(*LABELS)
    trainer = run.trainer
    stage = trainer.course.leg.stage
    batch = trainer._next_batch(stage, 0.5)
    assert len(batch.anchor) == stage.batch_size + 6
    assert batch.few.tolist() == [0] * 6
    assert batch.grouped == stage.batch_size
    assert prepared().trainer._next_batch(stage, 0.5).few is None


def test_without_labels_none_are_told():
    run = prepared()
    assert run.trainer.few is None
    assert run.few == {}
    told = prepared("data.label_these=1")  # chosen, but no term looks at them
    assert told.few == {}
    assert "labels are used" not in " ".join(told.foretold)


def test_the_verdict_tells_how_many_maps_fit_and_which_labels_were_used():
    run = prepared(*LABELS)
    learnt = learn(run)
    why = " ".join(learnt.fitted.verdict["why"])
    assert "36 maps of the symbols fit what is known, 1 exchange names; a label for 0 would leave 0" in why
    assert "Labels were used: of 6 training images, all of symbol 0." in why
    assert learnt.fitted.verdict["checks"]["rule_names"]["value"] == 1.0
    assert {"answer_accuracy", "answer_accuracy_anew", "concept_ece"} <= set(learnt.metrics)


def judged(run, few, **metrics):
    seen = {"clusters_used": 10, "mean_confidence": 0.99, "validation_constraint_satisfied": 1.0} | metrics
    return judge(
        run.method_config, seen, clusters=10, test_points=100, selection_losses=[], loss_range=None, interventions=0,
        constraint=run.constraint, left_open=run.left_open, few=few,
    )["checks"]["rule_names"]["value"]  # fmt: skip


def test_names_are_only_shown_where_nothing_else_is_left():
    even_odd, half = prepared(), prepared(name="digits-half")
    assert judged(even_odd, {}) == 0.0
    assert judged(even_odd, {0: 10}) == 1.0
    assert judged(half, {}) == 1.0
    assert judged(half, {}, namings_open=2.0) == 0.0  # the groups as they were read tell less


@pytest.mark.parametrize(("name", "left"), [("half", 0), ("even-odd", 1), ("math", 1), ("xor", 1)])
def test_groups_as_read_tell_what_is_left_open(name, left):
    task = TASKS[name]
    rule = Constraint.from_function(task.answer, [range(task.symbols)] * task.size)
    groups = torch.tensor(task.occurring).repeat(12, 1)
    answers = rule.numbered([task.answer(*group) for group in groups.tolist()])
    misread = groups.clone()
    misread[::17, 0] = (misread[::17, 0] + 1) % task.symbols  # these break the rule, and do not count
    assert open_namings(rule, misread, answers) == left


def test_the_likeliest_answer_may_be_right_where_the_likeliest_symbols_are_not():
    total = Constraint.from_function(lambda a, b: a + b, [range(2)] * 2)
    p = torch.tensor([[0.55, 0.45], [0.45, 0.55]])
    assert right_answers(total, p.log(), torch.tensor([1])) == 1.0
    assert right_answers(total, p.log(), torch.tensor([0])) == 0.0


def test_what_cannot_be_is_refused():
    for settings, said in (
        (("stage2.terms.labelled.weight=1",), r"see data\.label_these"),
        (("data.label_these=1", "data.labelled=5000"), "must be at most the"),
    ):
        with pytest.raises(UserError, match=said):
            prepared(*settings)
    with pytest.raises(UserError, match="it needs a rule"):
        prepare(parse(override(preset("digits"), ["data.label_these=1"])))

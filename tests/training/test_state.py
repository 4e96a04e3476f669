"""The training state: one object, copied, restored, saved and shared out without knowing what is in it."""

import threading

import pytest
import torch

from gedi.moves.move import Proposal
from gedi.nn import MLP, EnergyHead, Model, Projector, Prototypes
from gedi.objectives.agreement import Agreement
from gedi.objectives.balance import Balance
from gedi.objectives.objective import Context
from gedi.processes import Processes
from gedi.training.state import State
from gedi.training.step import JointPass
from gedi.training.tree import joined_tree
from gedi.types import Spread

CPU = torch.device("cpu")


class Pretended(Processes):
    """Processes that are threads of this one: a gather waits until all have come."""

    def __init__(self, rank, size, meeting):
        super().__init__(rank, size)
        object.__setattr__(self, "meeting", meeting)

    def _gather(self, x):
        barrier, given = self.meeting
        given[self.rank] = x
        barrier.wait(10)
        everyone = torch.stack([given[rank] for rank in range(self.size)])
        barrier.wait(10)
        return everyone


def two():
    meeting = threading.Barrier(2), {}
    return [Pretended(rank, 2, meeting) for rank in range(2)]


def together(*calls):
    """Each call in a thread of its own; what they return, in order."""
    found = {}
    threads = [
        threading.Thread(target=lambda i=i, call=call: found.update({i: call()})) for i, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [found[i] for i in range(len(calls))]


def model_of(seed):
    torch.manual_seed(seed)
    return Model(MLP(2, (4,), 3), Projector(3, 5, 4), Prototypes(4, 2), density=EnergyHead(3))


def state_of(seed=0, processes=None, steps=0):
    """A state with something of every kind, after some steps of descent."""
    processes = processes or Processes()
    model = model_of(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    state = State(JointPass(model, processes), optimizer, processes, CPU)
    g = torch.Generator().manual_seed(seed)
    rows = torch.randn(7, 2, generator=g)
    state.density = {"chains": Spread(processes.own(rows), 7), "scale": torch.randn(1, generator=g)}
    queue = torch.randn(5, 3, generator=g)
    state.begin(
        {
            "plain": None,
            "running": {"mean": torch.randn(2, generator=g), "seen": 3, "queue": [Spread(processes.own(queue), 5)]},
        },
        averaged=True,
    )
    for _ in range(steps):
        step(state)
    return state


def step(state):
    """Everything changes."""
    optimizer, model = state.optimizer, state.model
    optimizer.zero_grad()
    out = model(torch.linspace(-1, 1, 12).view(6, 2))
    (out.logits[:, 0].mean() + out.energy.mean()).backward()
    optimizer.step()
    state.update_average(0.9)
    state.iteration += 1
    state.density["chains"].rows.add_(1.0)
    state.density["scale"] = state.density["scale"] * 2
    running = state.objectives["running"]
    state.objectives = {
        **state.objectives,
        "running": {**running, "mean": running["mean"] / 2, "seen": running["seen"] + 1},
    }
    running["queue"][0].rows.mul_(3.0)
    state.tail.append(torch.tensor(float(state.iteration)))


def everything(state):
    """All of it as a flat list, for a look at every bit."""
    return flat({**vars_of(state), "model": state.model.state_dict(), "optimizer": state.optimizer.state_dict()})


def vars_of(state):
    return {name: getattr(state, name) for name in ("iteration", "density", "objectives", "average", "tail")}


def flat(tree, path=""):
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in flat(value, f"{path}.{key}")]
    if isinstance(tree, list | tuple):
        return [leaf for i, value in enumerate(tree) for leaf in flat(value, f"{path}.{i}")]
    return [(path, tree.detach().clone() if isinstance(tree, torch.Tensor) else tree)]


def same(a, b):
    """The same leaves by the same names, to the last bit."""
    assert [path for path, _ in a] == [path for path, _ in b]
    different = [
        path
        for (path, x), (_, y) in zip(a, b, strict=True)
        if not (torch.equal(x, y) and x.dtype == y.dtype if isinstance(x, torch.Tensor) else x == y)
    ]
    return not different


def test_the_steps_of_these_tests_change_everything():
    before, after = everything(state_of(steps=1)), everything(state_of(steps=2))
    changed = [
        path
        for (path, x), (_, y) in zip(before, after, strict=False)
        if isinstance(x, torch.Tensor) and not torch.equal(x, y)
    ]
    for part in (
        ".density.chains",
        ".density.scale",
        ".objectives.running.mean",
        ".objectives.running.queue",
        ".average",
    ):
        assert any(path.startswith(part) for path in changed), part
    assert not same(everything(state_of(steps=1)), everything(state_of(seed=1, steps=1)))


def test_a_copy_is_not_changed_by_later_training_and_going_back_to_it_is_exact_and_can_be_repeated():
    state = state_of(steps=2)
    then = everything(state)
    copy = state.copy()
    for _ in range(3):
        step(state)
    later = everything(state)
    for _ in range(2):
        state.restore(copy)
        assert same(everything(state), then)
        for _ in range(3):
            step(state)
        assert same(everything(state), later)  # and goes on as it did before


def test_a_copy_has_all_that_a_state_holds_and_a_new_part_of_it_too():
    state = state_of()
    assert set(state.copy()) == {"iteration", "density", "objectives", "average", "tail", "model", "optimizer"}
    state.further = {"more": torch.ones(2)}
    copy = state.copy()
    state.further["more"].zero_()
    state.restore(copy)
    assert torch.equal(state.further["more"], torch.ones(2))


def test_a_saved_state_is_the_same_in_another_object(tmp_path):
    state, other = state_of(steps=3), state_of(seed=5)
    torch.save(state.state_dict(), tmp_path / "state.pt")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert same(everything(other), everything(state))
    step(state)
    step(other)
    assert same(everything(other), everything(state))


def test_what_is_spread_is_shared_out_to_two_processes_and_joined_again():
    alone = state_of(steps=2)
    saved = alone.state_dict()
    states = [state_of(seed=7 + p.rank, processes=p) for p in two()]
    for rank, state in enumerate(states):
        state.load_state_dict(saved)
        assert torch.equal(state.density["chains"].rows, alone.density["chains"].rows[rank::2])
        assert state.density["chains"].total == 7
        (queue,) = state.objectives["running"]["queue"]
        assert torch.equal(queue.rows, alone.objectives["running"]["queue"][0].rows[rank::2])
        assert same(flat(state.average), flat(alone.average))
    joined = together(*(state.state_dict for state in states))
    for one in joined:
        assert same(flat(one), flat(saved))
    back = state_of(seed=9)
    back.load_state_dict(joined[1])
    assert same(everything(back), everything(alone))


def test_two_processes_go_back_to_a_copy_of_their_own_share():
    states = [state_of(processes=p, steps=1) for p in two()]
    before = [everything(state) for state in states]
    copies = [state.copy() for state in states]
    for state, copy, then in zip(states, copies, before, strict=True):
        step(state)
        state.restore(copy)
        assert same(everything(state), then)


def test_a_run_goes_on_with_another_number_of_processes_with_the_same_rows():
    """Of two processes' state, three take theirs."""
    states = [state_of(processes=p) for p in two()]
    saved = together(*(state.state_dict for state in states))[0]
    whole = state_of().density["chains"].rows
    for rank in range(3):
        state = state_of(seed=3, processes=Processes(rank, 3))
        state.load_state_dict(saved)
        assert torch.equal(state.density["chains"].rows, whole[rank::3])


def test_nothing_is_saved_of_what_is_not_there():
    model = model_of(0)
    state = State(JointPass(model), torch.optim.Adam(model.parameters()), Processes(), CPU)
    saved = state.state_dict()
    assert (saved["density"], saved["objectives"], saved["average"], saved["tail"]) == (None, {}, [], [])
    state.load_state_dict(saved)
    assert state.density is None
    assert state.is_finite()


@pytest.mark.parametrize("where", ["density", "objectives", "average", "model", "moments"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_one_bad_number_anywhere_in_it_is_seen(where, bad):
    state = state_of(steps=1)
    assert state.is_finite()
    {
        "density": lambda: state.density["chains"].rows[3:4].fill_(bad),
        "objectives": lambda: state.objectives["running"]["mean"][1:].fill_(bad),
        "average": lambda: state.average[0].view(-1)[:1].fill_(bad),
        "model": lambda: state.model.projector.state_dict()["net.1.running_mean"][:1].fill_(bad),
        "moments": lambda: state.optimizer.state[state.model.prototypes.weight]["exp_avg"][0].fill_(bad),
    }[where]()
    assert not state.is_finite()


def test_every_process_hears_of_a_bad_number_in_one_of_them():
    states = [state_of(processes=p) for p in two()]
    assert together(*(state.is_finite for state in states)) == [True, True]
    states[1].density["chains"].rows[0, 0] = torch.nan
    assert together(*(state.is_finite for state in states)) == [False, False]


def test_a_new_stage_begins_with_what_its_objectives_begin_with_and_an_average_where_the_weights_are():
    state = state_of(steps=2)
    state.begin({"other": {"x": torch.zeros(1)}}, averaged=False)
    assert (list(state.objectives), state.average, state.tail) == (["other"], [], [])
    state.begin({}, averaged=True)
    assert all(map(torch.equal, state.average, state.model.parameters()))


def test_what_objectives_begin_with_is_moved_to_where_training_is():
    model = model_of(0)
    elsewhere = State(JointPass(model), torch.optim.Adam(model.parameters()), Processes(), torch.device("meta"))
    elsewhere.begin({"running": {"mean": torch.ones(2)}}, averaged=False)
    assert elsewhere.objectives["running"]["mean"].device.type == "meta"


@pytest.mark.parametrize("order", [torch.tensor([1, 0]), None])
def test_new_prototypes_take_moments_and_average_with_them(order):
    state = state_of(steps=2)
    weight = state.model.prototypes.weight
    place = [p is weight for p in state.model.parameters()].index(True)
    moments = {name: x.clone() for name, x in state.optimizer.state[weight].items()}
    average, new = state.average[place].clone(), torch.randn(2, 4)
    state.replace_prototypes(Proposal("x", new, order, 1.0, 0.0), {})
    assert torch.equal(weight, new)
    assert torch.equal(state.average[place], new if order is None else average[order])
    for name in ("exp_avg", "exp_avg_sq"):
        expected = torch.zeros(2, 4) if order is None else moments[name][order]
        assert torch.equal(state.optimizer.state[weight][name], expected)


SHARES = torch.tensor([0.3, 0.7]).log()


@pytest.mark.parametrize(
    ("order", "found", "expected"),
    [
        (None, SHARES, [0.3, 0.7]),  # a move that knows
        (torch.tensor([1, 0]), None, [0.2, 0.8]),  # renamed: each keeps what it had
        (None, None, [0.5, 0.5]),  # drawn anew, and nobody knows
    ],
)
def test_the_shares_of_new_prototypes_reach_the_terms_that_share_points_out(order, found, expected):
    state = state_of(steps=1)
    context = Context(2, 4, 0.1, finer=4, finds_shares=True)
    terms = {"balance": Balance(weight=1.0).bind(context), "agreement": Agreement(weight=1.0).bind(context)}
    state.begin({name: term.begin() for name, term in terms.items()}, averaged=False)
    assert state.objectives["balance"].exp().tolist() == pytest.approx([0.5, 0.5])
    state.objectives["balance"] = torch.tensor([0.8, 0.2]).log()
    state.replace_prototypes(Proposal("x", torch.randn(2, 4), order, 1.0, 0.0, found), terms)
    assert state.objectives["balance"].exp().tolist() == pytest.approx(expected)
    assert state.objectives["agreement"] is None


def test_a_copy_is_joined_as_a_state_is():
    """What restarts and the guard keep goes into a checkpoint in the same form."""
    states = [state_of(processes=p) for p in two()]
    copies = [state.copy() for state in states]
    joined = together(*(lambda s=s, c=c: joined_tree(c, s.processes) for s, c in zip(states, copies, strict=True)))
    assert same(flat(joined[0]), flat(state_of().state_dict()))
    assert same(flat(joined[1]), flat(joined[0]))

"""What the processes of a test do; each is started anew and finds this module by its name."""

import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from gedi.building import build_model, build_stages, context_of
from gedi.config import override, parse
from gedi.densities.density import Draw, Place
from gedi.logic import Constraint
from gedi.objectives.objective import Few
from gedi.presets import preset
from gedi.processes import Processes
from gedi.random import Streams
from gedi.sampling import Box
from gedi.training.sharding import whole
from gedi.training.step import Batch, JointPass

BOX = Box(torch.tensor([-2.0, -2.0]).double(), torch.tensor([2.0, 2.0]).double())
GROUPS, SIZE, FREE = 4, 3, 6  # in the whole batch
#: Every term there is, in the order they are summed; those that look at the walk are of their kind's own.
DENSITY = ("generative", "denoising", "penalty")
WALKS = {"swapped_walk": "swapped", "agreement_walk": "agreement"}
TERMS = (
    *DENSITY, "negative_free", "swapped", "swapped_walk", "agreement", "agreement_walk", "balance", "finer", "barlow",
    "contrastive", "constraint", "supervised", "proposed", "nt_xent", "cpc", "proto_cpc", "k_shot", "deep_cluster",
    "uniformity", "vicreg", "w_mse", "mec", "cor_info_max", "labelled",
)  # fmt: skip


def start(rank, size, place):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=size)
    return Processes(rank, size)


def finish(found, rank, place):
    """Hand over what was found and end at once: taking Gloo apart may hang, see gedi.ending."""
    torch.save(found, f"{place}/found{rank}.pt")
    dist.barrier()  # nobody is waited for any more
    os._exit(0)


def stage_and_model(second, p):
    weights = [f"stage2.density.{name}=1" for name in DENSITY]
    weights += [f"stage2.terms.{name}.weight=1" for name in TERMS if name not in (*DENSITY, *WALKS)]
    weights += [f"stage2.terms.{name}={{kind: {kind}, look: walk, weight: 1}}" for name, kind in WALKS.items()]
    shape = ["model.clusters=3", "model.finer=5", "model.temperature=0.3", f"density.own_encoder={second}"]
    config = parse(override(preset("moons"), [*weights, *shape, "stage1.iterations=0", "model.hidden=[7, 6]"]))
    rule = Constraint.from_predicate(lambda a, b, c: (a + b) % 3 == c, domains=[range(3)] * 3)
    density = config.density.bind(Place(BOX, BOX, p))
    few = Few(torch.arange(4), torch.arange(4) % 3)
    shares = torch.tensor([0.2, 0.3, 0.5])
    (stage,) = build_stages(config, density, context_of(config, 3, rule, labelled=True, shares=shares, few=few))
    assert set(stage.weights(progress=0.9)) == set(TERMS)
    return stage, build_model(config, (2,), 3, Streams(0)).double()


def whole_batch(second):
    g = torch.Generator().manual_seed(5)
    n = GROUPS * SIZE + FREE
    x, noise_view, walk, noise = (torch.randn(n, 2, generator=g, dtype=torch.float64) for _ in range(4))
    negatives = torch.randn(8, 2, generator=g, dtype=torch.float64)
    noised = torch.cat([x, x]) + 0.05 * torch.cat([noise, -noise])
    labels = torch.randint(0, 3, (n,), generator=g)
    looks = {"view": x + 0.1 * noise_view, "walk": x + 0.2 * walk}
    looks |= {f"view{i}": x + 0.1 * torch.randn(n, 2, generator=g, dtype=torch.float64) for i in (2, 3)}
    apart = {"samples": negatives, "noised": noised, "noise": torch.cat([noise, -noise])}
    return Batch(x, looks, drawn(x, apart, second), 0.9, GROUPS * SIZE, labels, labels.flip(0), None, labels[-4:])


def drawn(x, apart, second):
    """Samples held against the data themselves, in the step's one pass or, with an encoder of their own, apart."""
    return Draw([], apart | {"contrast": x}) if second else Draw([x, apart["samples"]], apart)


def part_of(batch, p):
    """One process's part, as a run would deal it out: its groups, then its free points."""

    def rows(x):
        groups, free = x[: GROUPS * SIZE].view(GROUPS, SIZE, *x.shape[1:]), x[GROUPS * SIZE :]
        mine = groups.chunk(p.size)[p.rank].flatten(0, 1)
        return torch.cat([mine, free.chunk(p.size)[p.rank]])

    def pairs(x):
        return torch.cat([rows(half) for half in x.chunk(2)])

    x, apart = rows(batch.anchor), batch.draw.apart
    mine = {"samples": p.own(apart["samples"]), "noised": pairs(apart["noised"]), "noise": pairs(apart["noise"])}
    draw = drawn(x, mine, "contrast" in apart)
    looks = {name: rows(look) for name, look in batch.looks.items()}
    return batch._replace(anchor=x, looks=looks, draw=draw, grouped=batch.grouped // p.size)


def gradients_of_terms(network, model, stage, batch):
    """Value and gradient of every term, and of their sum, as the step after a first one would make them."""
    found, begun = {}, {name: term.begin() for name, term in stage.terms.items()}
    carried = network(batch, lambda: (stage, begun), False).carried
    for name in (*TERMS, "sum"):
        model.zero_grad()
        values = network(batch, lambda: (stage, carried), False).terms
        value = sum(values[term] for term in TERMS) if name == "sum" else values[name]
        value.backward()
        gradients = {p: None if x.grad is None else whole(x.grad).clone() for p, x in model.named_parameters()}
        found[name] = {"value": value.detach(), "gradients": gradients}
    found["buffers"] = {name: x.clone() for name, x in model.named_buffers()}
    return found


def compare_gradients(rank, size, place, strategy, second):
    p = start(rank, size, place)
    stage, model = stage_and_model(second, p)
    joint = JointPass(model, p)
    if strategy == "ddp":
        network = DistributedDataParallel(joint, find_unused_parameters=True, broadcast_buffers=False)
    else:
        network = fully_shard(joint, mesh=init_device_mesh("cpu", (size,)), reshard_after_forward=False)
    found = gradients_of_terms(network, model, stage, part_of(whole_batch(second), p))
    finish(found, rank, place)


def collectives(rank, size, place):
    p = start(rank, size, place)
    rows = torch.arange(14.0).view(7, 2)
    assert torch.equal(p.whole(p.own(rows), 7), rows)
    assert p.of_all(rank * 10) == [0, 10]
    assert p.of_first(lambda: f"made by {rank}") == "made by 0"
    assert p.mean({"a": float(rank)}) == {"a": 0.5}
    assert p.highest(torch.tensor([float(rank), -float(rank)])).tolist() == [1.0, 0.0]
    worst = p.highest(torch.tensor([float("nan") if rank else 1.0, 2.0]))
    assert worst.isnan().tolist() == [True, False]
    outcome = "fine"
    try:
        p.of_first(lambda: 1 / 0)
    except Exception as error:
        outcome = type(error).__name__
    finish({"outcome": outcome}, rank, place)


#: Densities beside the energy of the terms above, small, and what they need of the model.
DENSITIES = {
    "denoiser": ("density={kind: denoiser, features: 2}",),
    "denoiser, shared encoder": ("density={kind: denoiser, features: 2, own_encoder: false}",),
    "flow": ("density={kind: flow, hidden: [5], transforms: 1}",),
    "autoregressive": ("density={kind: autoregressive, hidden: [5], transforms: 1}",),
    "vae": ("density={kind: vae, width: 4, code: 2}",),
    "vae, own encoder": ("density={kind: vae, width: 4, code: 2, own_encoder: true}",),
    "jem": ("density={kind: jem, buffer: 20, chains: 8}", "model.head=linear"),
    "contrastive": ("density={kind: contrastive, buffer: 20, chains: 8, bank: 9, embedding: 3}",),
    "contrastive, own encoder": (
        "density={kind: contrastive, buffer: 20, chains: 8, bank: 9, embedding: 3, own_encoder: true}",
    ),
    "energy-matching": ("density={kind: energy-matching, buffer: 20, chains: 8, warmup: 0, ways: 1}",),
    "energy-matching, not yet warm": ("density={kind: energy-matching, buffer: 20, chains: 8}",),
}


def density_stage(name, p):
    """A stage that trains a density alone, and a network that has one, stirred."""
    changes = [*DENSITIES[name], "stage2.density=null", "stage2.iterations=0"]
    config = parse(override(preset("moons"), changes))
    (stage,) = build_stages(config, config.density.bind(Place(BOX, BOX, p)), context_of(config, 2, None))
    model = build_model(config, (2,), 2, Streams(0)).double()
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in [] if model.density is None else model.density.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=g, dtype=torch.float64))
    return stage, model


def density_batch(model, stage, p):
    """A process's part of one batch, and of what one process draws for it."""
    x = torch.randn(12, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    alone = stage.density.bind(Place(BOX, BOX))
    begun = alone.begin(torch.Generator().manual_seed(6))
    draw, _ = alone.draw(model, x, x, stage.density_weights, begun, Streams(0))

    def mine(part):
        return part.chunk(p.size)[p.rank]

    apart = {name: mine(part) for name, part in draw.apart.items()}
    own = draw._replace(apart=apart, encoded=[mine(part) for part in draw.encoded])
    return Batch(mine(x), {}, own, 0.5)


def density_gradient(network, model, stage, batch):
    """Value and gradients of all terms of a density."""
    terms = network(batch, lambda: (stage, {}), False).terms
    value = sum(terms[term] for term in stage.density_weights)
    value.backward()
    gradients = {name: whole(w.grad).clone() for name, w in model.named_parameters() if w.grad is not None}
    return {"value": value.detach(), "gradients": gradients}


def compare_densities(rank, size, place, strategy):
    p = start(rank, size, place)
    found = {}
    for name in DENSITIES:
        stage, model = density_stage(name, p)
        batch = density_batch(model, stage, p)
        joint = JointPass(model, p)
        if strategy == "ddp":
            network = DistributedDataParallel(joint, find_unused_parameters=True, broadcast_buffers=False)
        else:
            network = fully_shard(joint, mesh=init_device_mesh("cpu", (size,)), reshard_after_forward=False)
        found[name] = density_gradient(network, model, stage, batch)
    finish(found, rank, place)

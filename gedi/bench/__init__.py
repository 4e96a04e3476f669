"""The benchmark: ratios against bare passes, peers and textbook forms, measured side by side in one process."""

from gedi.bench.findings import Subject
from gedi.bench.growth import growths
from gedi.bench.logic import logic
from gedi.bench.losses import losses
from gedi.bench.processes import processes
from gedi.bench.samplers import samplers
from gedi.bench.steps import steps

#: Every subject by its name on the command line; a new one is a file and a line here.
SUBJECTS: dict[str, Subject] = {
    "steps": steps,
    "samplers": samplers,
    "losses": losses,
    "logic": logic,
    "growth": growths,
    "processes": processes,
}

__all__ = ["SUBJECTS"]

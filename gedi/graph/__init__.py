"""The graph of a table's points: who is near whom, bumps on them, walks along it, its cuts, and what a walk keeps."""

from gedi.graph.bumps import Bumps, fit_bumps
from gedi.graph.cut import Cut, cut_shares, normalised_cut
from gedi.graph.information import information_kept, information_kept_by_cut, longest_walk
from gedi.graph.neighbours import local_scales, neighbours, some_of
from gedi.graph.spectrum import OF_ONE_PART, Spectrum, spectrum
from gedi.graph.walk_graph import WalkGraph

__all__ = [
    "OF_ONE_PART",
    "Bumps",
    "Cut",
    "Spectrum",
    "WalkGraph",
    "cut_shares",
    "fit_bumps",
    "information_kept",
    "information_kept_by_cut",
    "local_scales",
    "longest_walk",
    "neighbours",
    "normalised_cut",
    "some_of",
    "spectrum",
]

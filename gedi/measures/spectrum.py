"""How many clusters the graph of the points speaks for; no labels."""

from typing import ClassVar

from gedi.measures.measure import Measure, Trained


class SpectralGap(Measure):
    """The gaps between the rates at which a walk forgets where it began: see :class:`gedi.graph.Spectrum`."""

    kind: ClassVar[str] = "spectrum"
    order: ClassVar[int] = 96
    about: ClassVar[dict[str, str]] = {
        "clusters_proposed": "how many clusters the gaps in the spectrum of the points' graph speak for; no labels",
        "spectral_gap": "the gap at that number, as a logarithm; of one part that hangs together up to 1.4",
    }

    def applies(self, trained: Trained) -> bool:
        """The graph of a table's points."""
        return trained.has_graph

    def __call__(self, trained: Trained) -> dict[str, float]:
        """The number, and how clear it is."""
        proposed = trained.spectrum.clusters
        return {"clusters_proposed": proposed, "spectral_gap": float(trained.spectrum.gaps[proposed - 1])}

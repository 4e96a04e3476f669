"""Figures of a run: one measure a file, found by its kind. See :class:`gedi.measures.measure.Measure`."""

"""Likelihood models behind one contract: one a file, found by its kind. See :class:`gedi.densities.density.Density`."""

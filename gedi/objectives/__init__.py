"""Training terms: one a file, found by its kind. See :class:`gedi.objectives.objective.Objective`."""

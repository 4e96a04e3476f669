"""Global steps that gradients cannot make: one a file, found by its kind. See :class:`gedi.moves.move.Move`."""

"""``python -m gedi`` and ``torchrun -m gedi``: the program ``gedi``."""

from gedi.cli import main

if __name__ == "__main__":
    main()

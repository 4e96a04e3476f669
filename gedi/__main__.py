"""The program ``gedi``, ``python -m gedi``, ``torchrun -m gedi``: it can be stopped from the first moment."""

from gedi.ending import default_signals, end_on_signals


def main() -> None:
    """Run the command line."""
    end_on_signals()
    try:
        from gedi.cli import main as command_line

        command_line()
    finally:
        default_signals()


if __name__ == "__main__":
    main()

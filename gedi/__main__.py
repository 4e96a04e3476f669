"""The program ``gedi``, ``python -m gedi``, ``torchrun -m gedi``: it can be stopped from the first moment."""

from gedi.ending import end_on_signals, ignore_signals


def main() -> None:
    """Run the command line."""
    end_on_signals()
    try:
        from gedi.cli import main as command_line

        command_line()
    finally:
        ignore_signals()


if __name__ == "__main__":
    main()

"""Further places for the logged figures, beside ``metrics.jsonl``: TensorBoard, or any Fabric logger by its name."""

import importlib
from pathlib import Path
from typing import Any

import yaml
from lightning_fabric.loggers import Logger, TensorBoardLogger

from gedi.errors import UserError


def make_logger(wish: str, run: Path) -> Logger:
    """The logger of ``tensorboard``, or of ``package.module.Class`` or ``package.module.Class:key=value,key=value``.

    Args:
        wish: what ``--logger`` was given.
        run: the run's directory; TensorBoard's files go to ``tensorboard`` in it.

    Example:
        >>> logger = make_logger("lightning_fabric.loggers.CSVLogger:root_dir=somewhere,name=mine", Path("run"))
        >>> type(logger).__name__, logger.name
        ('CSVLogger', 'mine')
    """
    if wish == "tensorboard":
        try:
            return TensorBoardLogger(root_dir=run, name="tensorboard", version="")
        except ModuleNotFoundError:
            raise UserError(
                "--logger tensorboard needs the package tensorboard, which is not here; run: pip install tensorboard"
            ) from None
    path, _, options = wish.partition(":")
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module of someone else's may fail in any way
        raise UserError(
            f"--logger takes tensorboard or the path of a Fabric logger such as lightning_fabric.loggers.CSVLogger, "
            f"got {wish!r}: {error}"
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, Logger)):
        raise UserError(f"--logger {path} must be a Fabric logger, a lightning_fabric.loggers.Logger, got {kind!r}")
    try:
        return kind(**dict(_option(option, wish) for option in options.split(",") if option))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"--logger {wish}: {error}; give what it needs as {path}:key=value,key=value") from None


def figures(record: dict[str, Any]) -> dict[str, float]:
    """The numbers of a record, named by their stage."""
    numbers = {name: value for name, value in record.items() if isinstance(value, int | float) and name != "iteration"}
    return {f"{record['stage']}/{name}": float(value) for name, value in numbers.items()}


def _option(text: str, wish: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--logger takes options as key=value, got {text!r} in {wish!r}")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise UserError(f"--logger {wish}: the value of {key.strip()!r} must be YAML, got {value!r}") from None

"""A model is asked about every row of some data, part by part."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gedi.data.streaming import Part, Stream
from gedi.errors import UserError
from gedi.estimator import GEDI
from gedi.methods import has_clusters, has_density
from gedi.usual import how_usual
from gedi.verbs import say
from gedi.verbs.inputs import stream_for, table_wishes
from gedi.verbs.outputs import RowWriter
from gedi.verbs.pictures import Sorted

Columns = dict[str, Any]


def answer(
    run: Path,
    data: str,
    question: str,
    out: Path | None,
    typed: tuple[str | None, str | None],
    data_dir: Path | None = None,
    *,
    quiet: bool = False,
    sort: Path | None = None,
    gallery: Path | None = None,
) -> None:
    """Write what a model answers for every row of DATA.

    Args:
        run: where the model is.
        data: as it was typed.
        question: ``predict``, ``score`` or ``embed``.
        out: the file; None is standard output.
        typed: ``--id`` and ``--delimiter``.
        data_dir: where known data sets are looked for first.
        quiet: no progress on standard error.
        sort: images are copied into folders of their clusters here.
        gallery: a picture of the clusters of images.
    """
    from gedi import threads

    threads.begin()
    model = GEDI.load(run)
    stream = stream_of(model, data, typed, data_dir)
    say(*stream.notes, quiet=quiet)
    if sort is not None or gallery is not None:
        if len(model.fitted_.shape) != 3:
            raise UserError("--sort and --gallery are of images, and the model is of rows")
        if sort is not None and not Path(data).is_dir():
            raise UserError(f"--sort copies the files of a folder of images, got {data!r}")
    with Sorted(Path(data), sort, gallery, model.n_clusters_) as pictures:
        write_answers(model, stream, question, out, quiet=quiet, pictures=pictures)


def stream_of(model: GEDI, data: str, typed: tuple[str | None, str | None], data_dir: Path | None) -> Stream:
    """The points of DATA for a model."""
    names = getattr(model, "feature_names_in_", ())
    wishes = table_wishes(id=typed[0], delimiter=typed[1])
    return stream_for(model.fitted_, [str(name) for name in names], model.id_, data, wishes, data_dir)


def write_answers(
    model: GEDI, stream: Stream, question: str, out: Path | None, *, quiet: bool, pictures: Sorted | None = None
) -> int:
    """Write a row for every point of a stream, and return how many there are."""
    done = 0
    with RowWriter(out) as writer, bar(stream.total, quiet) as advance:
        for part in stream.parts:
            columns = {stream.id: part.ids, **answers(model, part, question)}
            writer.write(columns)
            if pictures is not None:
                pictures.take(part, columns.get("cluster"))
            done += len(part.points)
            advance(len(part.points))
        if done == 0:
            raise UserError("the data must hold at least one row, but hold none")
        if pictures is not None:
            pictures.finish()
    return done


def answers(model: GEDI, part: Part, question: str) -> Columns:
    """Columns of what a model answers for some points."""
    config = model.fitted_.config
    points = part.points
    if question == "embed":
        embedding = model.fitted_.embed(points).numpy()
        return {f"e{i}": column for i, column in enumerate(embedding.T)}
    found: Columns = {}
    if question == "predict":
        if not has_clusters(config):
            raise UserError(f"predict needs clusters, and method {config.method} trains none: cluster what embed gives")
        probability = model.fitted_.probabilities(points).numpy()
        found = {"cluster": probability.argmax(axis=1), "probability": probability.max(axis=1)}
    elif not has_density(config):
        raise UserError("score needs a density, and this model has none: gedi presets --parts says which have one")
    if has_density(config):
        log_density = model.fitted_.log_density(points).numpy()
        found["log_density"] = log_density
        if np.isfinite(model.offset_):
            found["outlier_score"] = model.strangeness(how_usual(model.fitted_, points).beside.numpy())
    return found


@contextmanager
def bar(total: int | None, quiet: bool) -> Iterator[Any]:
    """A bar on standard error, where that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("rows"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn())
    shown = not quiet and console.is_terminal and sys.stderr is not None
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("rows", total=total)
        yield lambda n: progress.advance(task, n)

"""Verbs for data of one's own: fit, predict, score, embed, sample. What takes long to import comes when it is used."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gedi.errors import UserError

DATA = ".csv .tsv .parquet .npy .npz, a folder of images, or the name of a known data set"
Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA)]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="the folder of a fit, of a run or of a model")]
Label = Annotated[str | None, typer.Option(help="a table: the column of labels, which is not learnt from; or none")]
Id = Annotated[str | None, typer.Option(help="a table: the column that names the rows; or none")]
Drop = Annotated[list[str] | None, typer.Option(help="a table: a further column to leave out")]
Delimiter = Annotated[str | None, typer.Option(help="a table of text: between values, if it is not found out")]
DataDir = Annotated[Path | None, typer.Option(help="the folder of data sets; else GEDI_DATA, else the user's cache")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help=".csv, .tsv or .parquet; standard output if not given")]
Side = Annotated[int | None, typer.Option(help="images: scaled to this number of pixels")]
Quiet = Annotated[bool, typer.Option("--quiet", envvar="GEDI_QUIET", help="no progress on standard error")]


def fit(
    data: Data,
    clusters: Annotated[str, typer.Option(metavar="K|auto", help="how many to look for")] = "auto",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the folder of the fit; runs/NAME")] = None,
    label: Label = None,
    id: Id = None,
    drop: Drop = None,
    delimiter: Delimiter = None,
    side: Side = None,
    scaling: Annotated[str, typer.Option(help="of columns: auto, together, apart, cosine")] = "auto",
    encoder: Annotated[str, typer.Option(help="auto, or identity: rows are features already")] = "auto",
    iterations: Annotated[int | None, typer.Option(min=1, help="training steps; the recipe's if not given")] = None,
    seed: Annotated[int, typer.Option(min=0, help="everything random follows from it")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="go on from the last checkpoint")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an earlier fit")] = False,
    data_dir: DataDir = None,
    quiet: Quiet = False,
) -> None:
    """Learn clusters and a density of your own data; labels.csv has a row for every row of them."""
    number = _number(clusters)
    from gedi.verbs.fitting import FitWishes, fit_into
    from gedi.verbs.inputs import table_wishes

    wishes = table_wishes(label, id, drop, delimiter)
    asked = FitWishes(number, wishes, side, scaling, encoder, iterations, seed)
    fit_into(data, asked, out, data_dir, resume=resume, overwrite=overwrite, quiet=quiet)


def predict(
    run: Run,
    data: Data,
    out: Out = None,
    id: Id = None,
    delimiter: Delimiter = None,
    sort: Annotated[Path | None, typer.Option(help="images: copy each into a folder of its cluster here")] = None,
    gallery: Annotated[Path | None, typer.Option(help="images: a picture of some of each cluster, .png")] = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
) -> None:
    """The cluster of each row, its probability, log density and outlier score."""
    from gedi.verbs.asking import answer

    answer(run, data, "predict", out, (id, delimiter), data_dir, quiet=quiet, sort=sort, gallery=gallery)


def score(
    run: Run,
    data: Data,
    out: Out = None,
    id: Id = None,
    delimiter: Delimiter = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
) -> None:
    """The log density of each row and its outlier score: above 1 are outliers."""
    from gedi.verbs.asking import answer

    answer(run, data, "score", out, (id, delimiter), data_dir, quiet=quiet)


def embed(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="the folder of a fit, a run or a model; not with --encoder")
    ],
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA)] = None,
    encoder: Annotated[
        str | None, typer.Option(help="a pretrained network in place of a run: timm:resnet18, hf:..., for images")
    ] = None,
    side: Side = None,
    out: Out = None,
    id: Id = None,
    delimiter: Delimiter = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
) -> None:
    """The embedding of each row by a run, or of each image by a pretrained network: gedi embed DATA --encoder NAME."""
    if encoder is not None:
        if data is not None:
            raise UserError("--encoder stands in place of RUN: gedi embed DATA --encoder NAME")
        from gedi.verbs.frozen import embed_frozen

        embed_frozen(encoder, run, side, out, data_dir, quiet=quiet)
        return
    if data is None:
        raise UserError("embed needs RUN and DATA, or DATA and --encoder NAME")
    from gedi.verbs.asking import answer

    answer(Path(run), data, "embed", out, (id, delimiter), data_dir, quiet=quiet)


def sample(
    run: Run,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="how many")] = 64,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help=".csv, .parquet, .npy; of images .npy, .png; standard output")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="everything random follows from it")] = 0,
) -> None:
    """Draw points of the learnt density."""
    from gedi.verbs.sampling import write_samples

    write_samples(run, n, out, seed)


VERBS = (fit, predict, score, embed, sample)


def _number(clusters: str) -> int | str:
    if clusters == "auto" or (clusters.isdecimal() and int(clusters) > 0):
        return clusters if clusters == "auto" else int(clusters)
    raise UserError(f"--clusters must be a whole number from 1 on, or auto, got {clusters!r}")


def say(*notes: str, quiet: bool = False) -> None:
    """Words on standard error."""
    for note in () if quiet else notes:
        print(note, file=sys.stderr)

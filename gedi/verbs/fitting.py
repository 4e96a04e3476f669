"""``gedi fit``: data of one's own become the directory of a run, with a label for every row."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gedi import threads
from gedi.checkpoints import writing
from gedi.choosing import AUTO, settings_for
from gedi.config import Config
from gedi.data import Dataset, Wishes
from gedi.devices import make_fabric
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.estimator import GEDI
from gedi.fitting import Prepared, prepare
from gedi.footprint import check_data
from gedi.methods import has_density
from gedi.random import Streams
from gedi.report import Progress, write_report
from gedi.running import say_results, stoppable
from gedi.runs import execute
from gedi.sharing import save_estimator
from gedi.sources import load_data
from gedi.usual import border, usual_seen
from gedi.verbs import say
from gedi.verbs.asking import stream_of, write_answers
from gedi.verbs.inputs import data_settings, provisional
from gedi.verdicts import Verdict


@dataclass(frozen=True)
class FitWishes:
    """What was asked of a fit."""

    clusters: int | str
    table: Wishes
    side: int | None
    scaling: str
    encoder: str
    iterations: int | None
    seed: int


def fit_into(
    data: str,
    asked: FitWishes,
    out: Path | None,
    data_dir: Path | None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> None:
    """Read, train, judge, and write the run, its report and ``labels.csv``.

    Args:
        data: as it was typed.
        asked: for the fit.
        out: the directory; None is one in ``runs``, called by the data.
        data_dir: where known data sets are looked for first.
        resume, overwrite: what is done about a run that is there.
        quiet: no progress on standard error.
    """
    threads.begin()
    config, points = read(data, asked, data_dir)
    prepared = prepare(config, fabric=make_fabric(), data=points)
    say(*points.notes, quiet=quiet)
    path = out or Path("runs") / (Path(data).expanduser().resolve().stem or "fit")
    directory = RunDirectory(path)
    claimed = directory.claimed(config, prepared.trainer.processes, resume=resume, overwrite=overwrite)
    with claimed, stoppable(prepared) as stop:
        threads.settle(prepared, directory)
        with nullcontext() if quiet else Progress(config) as progress:
            results = execute(prepared, directory, progress or (lambda record: None), stop=lambda: bool(stop))
        with writing(path):
            model = estimator_of(prepared, results, asked)
            save_estimator(model, path / "model")
            report = write_report(directory)
            stream = stream_of(model, data, (asked.table.id, asked.table.delimiter), data_dir)
            write_answers(model, stream, "predict", path / "labels.csv", quiet=quiet)
    say_results(results, path, report)
    print(f"labels: {path / 'labels.csv'}")


def read(data: str, asked: FitWishes, data_dir: Path | None) -> tuple[Config, Dataset]:
    """The points of DATA, and the settings for points like them."""
    named = data_settings(data, asked.table, asked.side)
    if asked.clusters == AUTO and named["name"] != "file":
        raise UserError(
            "--clusters auto counts clusters by the graph of a table's rows, and these are images: give --clusters K, "
            "or count those of features: gedi embed DATA --encoder NAME -o features.parquet, then gedi fit "
            "features.parquet"
        )
    first = provisional(named, asked.scaling, asked.seed)
    check_data(first)
    points = load_data(first, Streams(asked.seed), data_dir)
    settings: dict[str, Any] = {"seed": asked.seed, "data": first.data.model_dump()}
    if asked.encoder != AUTO:
        settings["model"] = {"encoder": asked.encoder}
    shape = tuple(points.train.shape[1:])
    config = settings_for(
        shape, len(points.train), clusters=asked.clusters, asked=settings, iterations=asked.iterations
    )
    return config, points


def estimator_of(prepared: Prepared, results: dict[str, Any], asked: FitWishes) -> GEDI:
    """A finished run as the estimator that its model folder is read back as."""
    fitted = prepared.fitted(results["verdict"])
    model = GEDI(
        asked.clusters,
        encoder=asked.encoder,
        scaling=asked.scaling,
        iterations=asked.iterations,
        random_state=asked.seed,
    )
    data = prepared.data
    model.fitted_, model.n_clusters_, model.results_, model.page_ = fitted, fitted.clusters, results, None
    model.columns_, model.frame_, model.notes_, model.id_ = None, None, list(data.notes), data.id
    model.n_features_in_ = getattr(fitted.inputs, "columns", None) or int(np.prod(fitted.shape))
    if data.names:
        model.feature_names_in_ = np.array(data.names, dtype=object)
    model.offset_ = model.border_ = model.median_ = float("nan")
    if has_density(fitted.config):
        usual = usual_seen(fitted, data.train)
        model.offset_, _ = border(usual.log_density, model.contamination)
        model.border_, model.median_ = border(usual.beside, model.contamination)
    model.verdict_ = Verdict.of(results["verdict"])
    return model

"""The command line."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, cast, get_args

import torch
import typer
from rich.console import Console
from rich.table import Table

from gedi.bench.command import bench
from gedi.checkpoints import writing
from gedi.config import Config, merge, override, parse, to_yaml
from gedi.data import CATALOGUE, fetch, find_folder, verify
from gedi.devices import make_fabric, share_cores
from gedi.errors import DivergenceError, UserError, unknown
from gedi.examine import PARTS, Recipe, evaluate_run
from gedi.loggers import make_logger
from gedi.presets import PRESETS, preset
from gedi.processes import EndedElsewhere, ProcessLost
from gedi.report import Progress, write_report
from gedi.runs import Prepared, RunDirectory, Stopped, execute, load_settings, prepare
from gedi.tables import TABLES, write_table

app = typer.Typer(
    help="Learn symbols from raw data without labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Known image data sets: what there is, get it, check it.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.command()(bench)
console = Console()
DataDir = Annotated[Path | None, typer.Option(help="the folder of data sets; else GEDI_DATA, else the user's cache")]


@app.command()
def run(
    target: Annotated[str, typer.Argument(metavar="PRESET|CONFIG.yaml", help="what to run")],
    profile: Annotated[str | None, typer.Option(help="paper or laptop")] = None,
    seed: Annotated[int | None, typer.Option(help="everything random follows from it")] = None,
    out: Annotated[Path | None, typer.Option(help="the run's directory")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on from the last checkpoint")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an earlier run")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="section.key=value")] = None,
    data_dir: DataDir = None,
    accelerator: Annotated[str, typer.Option(help="auto, cpu, cuda or mps")] = "cpu",
    devices: Annotated[int, typer.Option(help="processes on this machine, one for each device")] = 1,
    num_nodes: Annotated[int, typer.Option(help="machines; start the program on each")] = 1,
    strategy: Annotated[str | None, typer.Option(help="for several processes: ddp (default) or fsdp")] = None,
    precision: Annotated[str, typer.Option(help="32-true, bf16-mixed or 16-mixed")] = "32-true",
    logger: Annotated[
        list[str] | None, typer.Option(help="tensorboard, or package.Class:key=value,... of a Fabric logger")
    ] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="compile the encoders, if a compiler is there")] = False,
) -> None:
    """Train, evaluate, and write a run directory with its report."""
    config = _config(target, profile, seed, settings or [])
    path = out or Path("runs") / f"{config.preset}-{config.method}-seed{config.seed}"
    fabric = make_fabric(
        accelerator, devices, num_nodes, strategy, precision, [make_logger(wish, path) for wish in logger or []]
    )
    prepared = prepare(config, fabric=fabric, compiled=compiled, data_dir=data_dir)
    # a toy's second thread costs more in hand-over than it computes; convolutions are large enough to share
    share_cores(devices, threads=1 if config.model.encoder == "mlp" else None)
    processes = prepared.trainer.processes
    for note in prepared.data.notes if processes.first else ():
        print(note, file=sys.stderr)
    processes.of_first(lambda: _run_directory(path, config, resume, overwrite))
    directory = RunDirectory(path)
    with _stoppable(prepared) as asked:
        with Progress(config) if processes.first else nullcontext() as progress:
            results = execute(prepared, directory, progress or (lambda record: None), stop=lambda: bool(asked))
        if not processes.first:
            return
        with writing(path):
            report = write_report(directory)
    shown = {name: value for name, value in results["metrics"].items() if isinstance(value, int | float)}
    first = ("nmi", "ami", "ari", "accuracy", "clusters_used", "kl", "walk_crossing")
    print("  ".join(f"{name} {shown[name]:.4g}" for name in first if name in shown))
    if results["interventions"]:
        print(f"the guard stepped in {results['interventions']} times: see docs/guard.md and {path / 'metrics.jsonl'}")
    print(f"{results['seconds']['total']:.0f} s; report: {report}")


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="a finished run on images")],
    part: Annotated[list[str] | None, typer.Option(help=f"some of {', '.join(PARTS)}; all if not given")] = None,
    ood: Annotated[list[str] | None, typer.Option(help="a data set to find strange: a known one, or noise")] = None,
    probe: Annotated[str, typer.Option(help="lbfgs, or sgd as in the paper")] = "lbfgs",
    samples: Annotated[int, typer.Option(min=2, help="images that FID compares")] = 500,
    inception: Annotated[Path | None, typer.Option(help="a file with Inception's weights, for standard FID")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="at most so many images of each set")] = None,
    data_dir: DataDir = None,
) -> None:
    """Measure a finished run's features (probe, k-NN), samples (FID) and outlier scores (AUROC)."""
    if probe not in get_args(Recipe):
        raise unknown("probe", probe, get_args(Recipe))
    torch.set_num_threads(os.cpu_count() or 1)
    directory = RunDirectory.open(run)
    found = evaluate_run(
        directory,
        parts=part,
        data_dir=data_dir,
        against=ood or [],
        recipe=cast(Recipe, probe),
        samples=samples,
        inception=inception,
        limit=limit,
    )
    print(json.dumps(found, indent=2))
    print(f"report: {write_report(directory)}")


@app.command()
def presets(name: Annotated[str | None, typer.Argument(help="show one in full")] = None) -> None:
    """List the presets, or show one in full."""
    if name is not None:
        print(to_yaml(parse(preset(name))), end="")
        return
    listing = Table("preset", "data", "stage 1", "stage 2", "tries")
    for known in PRESETS:
        config = parse(preset(known))
        listing.add_row(
            known,
            config.data.name,
            f"{config.stage1.iterations} it",
            f"{config.stage2.iterations} it",
            f"up to {config.n_init}",
        )
    console.print(listing)


@app.command()
def table(
    name: Annotated[str, typer.Argument(help=", ".join(TABLES))],
    profile: Annotated[str, typer.Option(help="paper or laptop")] = "laptop",
    seeds: Annotated[int, typer.Option(min=1, help="seeds per cell")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="the first of them")] = 0,
    out: Annotated[Path | None, typer.Option(help="where the table goes")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="a data set or method of the table; others are left out")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at a time; as many as there are cores")] = None,
    data_dir: DataDir = None,
) -> None:
    """Reproduce one of the paper's tables, published figures beside ours."""
    print(
        write_table(
            name,
            profile=profile,
            seeds=range(first_seed, first_seed + seeds),
            out=out,
            jobs=jobs,
            data_dir=data_dir,
            only=only or [],
        )
    )


@app.command()
def report(run: Annotated[Path, typer.Argument(help="a run's directory")]) -> None:
    """Draw a run's figures and write its page again."""
    print(write_report(RunDirectory.open(run)))


@data_app.command("list")
def data_list(data_dir: DataDir = None) -> None:
    """List the data sets that can be got, and where they are on this machine."""
    for name, entry in CATALOGUE.items():
        print(f"{name:<14} {entry.about}; {find_folder(name, data_dir) or 'not here yet'}")


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help=", ".join(CATALOGUE))],
    data_dir: DataDir = None,
) -> None:
    """Download a data set from its official place and check it; what is there already is kept."""
    print(f"{name}: {fetch(name, data_dir)}")


@data_app.command("verify")
def data_verify(
    name: Annotated[str, typer.Argument(help=", ".join(CATALOGUE))],
    data_dir: DataDir = None,
) -> None:
    """Check each file of a data set against the official checksums."""
    states = verify(name, data_dir)
    for state in states:
        print(f"{state.state:<13} {state.path}" + (f": {state.why}" if state.why else ""))
    good = sum(state.state == "ok" for state in states)
    if good < len(states):
        raise UserError(
            f"{name} must be the official files, but {good} of {len(states)} are; run: gedi data get {name}"
        )


def _run_directory(path: Path, config: Config, resume: bool, overwrite: bool) -> None:
    """A directory to run into, or to go on in."""
    if not (resume and (path / "config.yaml").is_file()):
        RunDirectory.create(path, overwrite=overwrite)
    elif RunDirectory.open(path).config() != config:
        raise UserError(f"--resume needs the settings the run began with: see {str(path / 'config.yaml')!r}")


def _config(target: str, profile: str | None, seed: int | None, settings: list[str]) -> Config:
    if Path(target).suffix in (".yaml", ".yml"):
        chosen = load_settings(target)
        base = chosen.get("preset", "toy")
        chosen = merge(preset(base, profile), chosen) if base in PRESETS else chosen
    else:
        chosen = preset(target, profile)
    chosen = override(chosen, settings)
    if seed is not None:
        chosen["seed"] = seed
    return parse(chosen)


@contextmanager
def _stoppable(prepared: Prepared) -> Iterator[list[int]]:
    """Notes Ctrl-C and SIGTERM for the training to see; the second one, or one after the training, ends at once.

    Either way the program says how to go on and ends with code 130 or 143.
    """
    asked: list[int] = []
    trainer = prepared.trainer

    def note(number: int, frame: object) -> None:
        asked.append(number)
        if len(asked) > 1 or trainer.leg == len(trainer.legs):
            raise Stopped

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    except KeyboardInterrupt:
        if trainer.processes.first:
            print(f"stopped; go on with: {_go_on()}", file=sys.stderr)
        raise typer.Exit(128 + (asked or [signal.SIGINT])[-1]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _go_on() -> str:
    """The command that goes on with this run."""
    same = [word for word in sys.argv[1:] if word not in ("--overwrite", "--resume")]
    return shlex.join(["gedi", *same, "--resume"])


def main() -> None:
    """The program ``gedi``: a user's mistake is one line and exit code 2, a diverged training 3, a lost process 4."""
    # One thread: at this size a second one costs more in hand-over than it computes.
    torch.set_num_threads(1)
    try:
        app()
    except EndedElsewhere:  # who failed has said why
        sys.exit(2)
    except ProcessLost as error:
        print(f"gedi: {error}, so this one ends; go on from the last checkpoint with: {_go_on()}", file=sys.stderr)
        sys.exit(4)
    except UserError as error:
        print(f"gedi: {error}", file=sys.stderr)
        sys.exit(2)
    except DivergenceError as error:
        print(f"gedi: {error}", file=sys.stderr)
        sys.exit(3)
    except OSError as error:
        print(f"gedi: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""), file=sys.stderr)
        sys.exit(2)

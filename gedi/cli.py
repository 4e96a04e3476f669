"""The command line: what each verb takes. What takes long to import is imported when a verb needs it."""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer
from pydantic import ValidationError

from gedi.bench.command import bench
from gedi.completion import any_of, setting
from gedi.ending import end_with, end_without_taking_apart, run_to_its_end
from gedi.errors import UserError, unknown
from gedi.names import ACCELERATORS, PARTS, PRECISIONS, PROFILES, STRATEGIES, KnownImages, Recipe
from gedi.presets import PRESETS, completed, preset
from gedi.tables import NAMES as TABLE_NAMES
from gedi.tables import write_table
from gedi.verbs import VERBS

if TYPE_CHECKING:
    from gedi.config import Config

app = typer.Typer(help="Learn symbols from raw data without labels.", no_args_is_help=True)
data_app = typer.Typer(help="Known image data sets: what there is, get it, check it.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.command()(bench)
for verb in VERBS:
    app.command()(verb)
#: What click, of which typer has its own copy since 0.26 or so, raises of arguments that it cannot take.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
_KNOWN = get_args(KnownImages)
Allowed = Annotated[
    list[str] | None, typer.Option(metavar="PACKAGE", help="code from elsewhere that settings in a file may name")
]
DataDir = Annotated[Path | None, typer.Option(help="the folder of data sets; else GEDI_DATA, else the user's cache")]
KnownSet = Annotated[str, typer.Argument(help=", ".join(_KNOWN), autocompletion=any_of(_KNOWN))]


def _one_of(names: Iterable[str], about: str = "{}") -> Any:
    """An option whose value is one of some names, which its help tells and the shell completes."""
    return typer.Option(help=about.format(", ".join(names)), autocompletion=any_of(names))


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version
        from platform import python_version

        from gedi import __version__

        print(f"gedi {__version__} (torch {version('torch')}, python {python_version()})")
        raise typer.Exit


@app.callback()
def gedi(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn symbols from raw data without labels."""


@app.command()
def run(
    target: Annotated[
        str, typer.Argument(metavar="PRESET|CONFIG.yaml", help="what to run", autocompletion=any_of(PRESETS))
    ],
    profile: Annotated[str | None, _one_of(PROFILES)] = None,
    seed: Annotated[int | None, typer.Option(help="everything random follows from it")] = None,
    out: Annotated[Path | None, typer.Option(help="the run's directory")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on from the last checkpoint")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an earlier run")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="section.key=value", autocompletion=setting)
    ] = None,
    data_dir: DataDir = None,
    accelerator: Annotated[str, _one_of(ACCELERATORS)] = "cpu",
    devices: Annotated[int, typer.Option(help="processes on this machine, one for each device")] = 1,
    num_nodes: Annotated[int, typer.Option(help="machines; start the program on each")] = 1,
    strategy: Annotated[str | None, _one_of(STRATEGIES, "for several processes: {}; the first if not given")] = None,
    precision: Annotated[str, _one_of(PRECISIONS)] = "32-true",
    logger: Annotated[
        list[str] | None, typer.Option(help="tensorboard, or package.Class:key=value,... of a Fabric logger")
    ] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="compile the encoders, if a compiler is there")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", envvar="GEDI_QUIET", help="no progress on standard error")] = False,
    allow: Allowed = None,
) -> None:
    """Train, evaluate, and write a run directory with its report."""
    _allow(allow)
    config = _config(target, profile, seed, settings or [])  # before the imports, which take seconds
    from gedi import threads
    from gedi.checkpoints import writing
    from gedi.devices import make_fabric
    from gedi.directory import RunDirectory, default_directory
    from gedi.fitting import prepare
    from gedi.loggers import make_logger
    from gedi.report import Progress, write_report
    from gedi.running import say_results, stoppable
    from gedi.runs import execute

    threads.begin()
    path = out or default_directory(config)
    fabric = make_fabric(
        accelerator, devices, num_nodes, strategy, precision, [make_logger(wish, path) for wish in logger or []]
    )
    if fabric.world_size > 1:
        end_without_taking_apart(fabric)
    prepared = prepare(config, fabric=fabric, compiled=compiled, data_dir=data_dir)
    processes = prepared.trainer.processes
    if processes.size > 1:
        end_without_taking_apart(prepared)
    for note in (*prepared.data.notes, *prepared.foretold) if processes.first and not quiet else ():
        print(note, file=sys.stderr)
    directory = RunDirectory(path)
    claimed = directory.claimed(config, processes, resume=resume, overwrite=overwrite)
    with claimed, stoppable(prepared) as asked:
        threads.settle(prepared, directory, devices)
        with Progress(config) if processes.first and not quiet else nullcontext() as progress:
            results = execute(prepared, directory, progress or (lambda record: None), stop=lambda: bool(asked))
        if not processes.first:
            return
        with writing(path):
            report = write_report(directory)
    say_results(results, path, report)


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="a finished run on images")],
    part: Annotated[list[str] | None, _one_of(PARTS, "some of {}; all if not given")] = None,
    ood: Annotated[list[str] | None, _one_of((*_KNOWN, "digits", "noise"), "a data set to find strange: {}")] = None,
    probe: Annotated[str, _one_of(get_args(Recipe), "{}; sgd is the paper's")] = "lbfgs",
    samples: Annotated[int, typer.Option(min=2, help="images that FID compares")] = 500,
    inception: Annotated[Path | None, typer.Option(help="a file with Inception's weights, for standard FID")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="the most images to take of each set")] = None,
    data_dir: DataDir = None,
    allow: Allowed = None,
) -> None:
    """Measure a finished run's features (probe, k-NN), samples (FID) and outlier scores (AUROC)."""
    _allow(allow)
    if probe not in get_args(Recipe):
        raise unknown("probe", probe, get_args(Recipe))
    from gedi import threads
    from gedi.directory import RunDirectory
    from gedi.evaluating import evaluate_run
    from gedi.report import write_report

    threads.use_all()
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
def presets(
    name: Annotated[str | None, typer.Argument(help="show one in full", autocompletion=any_of(PRESETS))] = None,
    parts: Annotated[bool, typer.Option("--parts", help="which parts of the method each preset uses")] = False,
) -> None:
    """List the presets, or show one in full."""
    if parts and name is not None:
        raise UserError(f"--parts is of all presets: leave out {name!r}, or leave out --parts to show it in full")
    if parts:
        from gedi.trained import parts_table

        print(parts_table())
        return
    if name is not None:
        from gedi.config import parse, to_yaml

        print(to_yaml(parse(preset(name))), end="")
        return
    from rich.console import Console
    from rich.table import Table

    listing = Table("preset", "data", "stages", "tries")
    for known, given in PRESETS.items():  # what they say themselves: complete ones would take the parts' imports
        stages = [f"{given[key]['iterations']} it" for key in sorted(given) if key.startswith("stage")]
        listing.add_row(known, given["data"]["name"], ", ".join(stages), f"up to {given['n_init']}")
    Console().print(listing)


@app.command()
def table(
    name: Annotated[str, typer.Argument(help=", ".join(TABLE_NAMES), autocompletion=any_of(TABLE_NAMES))],
    profile: Annotated[str, _one_of(PROFILES)] = "laptop",
    seeds: Annotated[int, typer.Option(help="seeds per cell")] = 5,
    first_seed: Annotated[int, typer.Option(help="the first of them")] = 0,
    out: Annotated[Path | None, typer.Option(help="where the table goes")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="a data set or method of the table; others are left out")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="runs at a time; as many as there are cores")] = None,
    done: Annotated[bool, typer.Option("--done", help="run nothing: write the table of what is done")] = False,
    precision: Annotated[str | None, _one_of(PRECISIONS)] = None,
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
            done=done,
            precision=precision,
        )
    )


@app.command()
def report(run: Annotated[Path, typer.Argument(help="a run's directory")], allow: Allowed = None) -> None:
    """Draw a run's figures and write its page again."""
    _allow(allow)
    from gedi import threads
    from gedi.directory import RunDirectory
    from gedi.report import write_report

    threads.begin()
    print(write_report(RunDirectory.open(run)))


@data_app.command("list")
def data_list(data_dir: DataDir = None) -> None:
    """List the data sets that can be got, and where they are on this machine."""
    from gedi.data import CATALOGUE, find_folder

    for name, entry in CATALOGUE.items():
        print(f"{name:<14} {entry.about}; {find_folder(name, data_dir) or 'not here yet'}")


@data_app.command("get")
def data_get(
    name: KnownSet,
    data_dir: DataDir = None,
) -> None:
    """Download a data set from its official place and check it; what is there already is kept."""
    from gedi.data import fetch

    print(f"{name}: {fetch(name, data_dir)}")


@data_app.command("verify")
def data_verify(
    name: KnownSet,
    data_dir: DataDir = None,
) -> None:
    """Check each file of a data set against the official checksums."""
    from gedi.data import verify

    states = verify(name, data_dir)
    for state in states:
        print(f"{state.state:<13} {state.path}" + (f": {state.why}" if state.why else ""))
    good = sum(state.state == "ok" for state in states)
    if good < len(states):
        raise UserError(
            f"{name} must be the official files, but {good} of {len(states)} are; run: gedi data get {name}"
        )


def _allow(packages: list[str] | None) -> None:
    from gedi.parts import allow

    for package in packages or []:
        allow(package)


def _config(target: str, profile: str | None, seed: int | None, settings: list[str]) -> "Config":
    from gedi.config import override, parse

    if Path(target).suffix in (".yaml", ".yml"):
        from gedi.directory import load_settings

        if profile is not None:
            raise UserError(
                f"--profile is for presets: write the one that is meant into {target!r}, such as circles-paper"
            )
        chosen = completed(load_settings(target))
    else:
        chosen = preset(target, profile)
    name = chosen.get("preset")
    chosen = override(chosen, settings)
    if chosen.get("preset") != name:
        raise UserError(
            "--set changes settings of a preset, not its name: give the preset in place of the first argument"
        )
    if seed is not None:
        chosen["seed"] = seed
    return parse(chosen)


def main() -> None:
    """The program ``gedi``; :mod:`gedi.ending` says how it can end."""
    end_with(run_to_its_end(_invoke))


def _invoke() -> None:
    if "_GEDI_COMPLETE" in os.environ:  # the shell asks what could come next
        app(prog_name="gedi")
    command = typer.main.get_command(app)
    try:
        with command.make_context("gedi", sys.argv[1:]) as context:
            command.invoke(context)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except _UsageError as error:
        raise _as_one_line(error) from None


def _as_one_line(error: Any) -> UserError:
    """What click says of wrong arguments; without any, it has shown the help."""
    said = error.format_message().rstrip(".").replace("Input should be", "must be")
    if not said:
        sys.exit(2)
    wrong = error.__cause__
    given = f", got {wrong.errors()[0]['input']!r}" if isinstance(wrong, ValidationError) else ""
    verb = error.ctx.command_path if error.ctx else "gedi"
    return UserError(f"{said[0].lower()}{said[1:]}{given} (see {verb} --help)")

"""The command ``gedi bench``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gedi.bench import SUBJECTS, subject
from gedi.bench.timing import FULL, QUICK, Effort
from gedi.completion import any_of
from gedi.errors import unknown

if TYPE_CHECKING:
    from gedi.bench.findings import Finding


def bench(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(metavar="SUBJECT", help=", ".join(SUBJECTS), autocompletion=any_of(SUBJECTS)),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="shorter turns and smaller work: a minute or two")] = False,
    out: Annotated[Path, typer.Option(help="the folder of bench.json and bench.png")] = Path("bench"),
    markdown: Annotated[
        Path | None, typer.Option(metavar="PAGE.md", help="measure nothing: put the tables of OUT into this page")
    ] = None,
) -> None:
    """Measure ratios against bare passes, peers and textbook forms, side by side in one process.

    Subjects that OUT holds already, of this machine and these versions, stay in the record.
    """
    for name in subjects or ():
        if name not in SUBJECTS:
            raise unknown("subject", name, SUBJECTS)
    import torch

    from gedi.bench import picture
    from gedi.bench.present import fill
    from gedi.bench.record import measured_before, read, record

    if markdown is not None:
        fill(markdown, read(out))
        print(markdown)
        return
    out.mkdir(parents=True, exist_ok=True)  # a place that takes no files is said now, not after a quarter of an hour
    torch.set_num_threads(1)  # ratios of one thread depend least on what else the machine does
    effort = QUICK if quick else FULL
    before = measured_before(out, quick=quick)  # a record that cannot be read is said now, too
    all_findings = before | {name: _measured(name, effort) for name in dict.fromkeys(subjects or SUBJECTS)}
    done = record({name: all_findings[name] for name in SUBJECTS if name in all_findings}, quick=quick)
    print(done.write(out))
    print(picture.draw(done, out / picture.FILE))


def _measured(name: str, effort: Effort) -> "list[Finding]":
    """Measure a subject and show it: a table in a terminal, else each line as it comes."""
    from rich.console import Console
    from rich.table import Table

    from gedi.bench.present import cells

    console, findings = Console(), []
    listing = Table(name, "median", "", title_justify="left")
    for found in subject(name)(effort):
        findings.append(found)
        listing.add_row(*cells(found))
        if not console.is_terminal:
            print("  ".join(filter(None, (name, *cells(found)))), flush=True)
    if console.is_terminal:
        console.print(listing)
    return findings

"""The command ``gedi bench``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gedi.bench import SUBJECTS, picture
from gedi.bench.findings import Finding
from gedi.bench.present import cells, fill
from gedi.bench.record import measured_before, read, record
from gedi.bench.timing import FULL, QUICK
from gedi.errors import unknown


def bench(
    subjects: Annotated[list[str] | None, typer.Argument(metavar="SUBJECT", help=", ".join(SUBJECTS))] = None,
    quick: Annotated[bool, typer.Option("--quick", help="shorter turns and smaller work: a minute or two")] = False,
    out: Annotated[Path, typer.Option(help="the folder of bench.json and bench.png")] = Path("bench"),
    markdown: Annotated[
        Path | None, typer.Option(metavar="PAGE.md", help="measure nothing: put the tables of OUT into this page")
    ] = None,
) -> None:
    """Measure ratios against bare passes, peers and textbook forms, side by side in one process.

    Subjects that OUT holds already, of this machine and these versions, stay in the record.
    """
    if markdown is not None:
        fill(markdown, read(out))
        print(markdown)
        return
    names = list(dict.fromkeys(subjects or SUBJECTS))
    for name in names:
        if name not in SUBJECTS:
            raise unknown("subject", name, SUBJECTS)
    out.mkdir(parents=True, exist_ok=True)  # a place that takes no files is said now, not after a quarter of an hour
    console = Console()
    findings: dict[str, list[Finding]] = {}
    for name in names:
        findings[name] = []
        for found in SUBJECTS[name](QUICK if quick else FULL):
            findings[name].append(found)
            if not console.is_terminal:
                print("  ".join(filter(None, (name, *cells(found)))), flush=True)
        if console.is_terminal:
            console.print(_table(name, findings[name]))
    all_findings = measured_before(out, quick=quick) | findings
    done = record({name: all_findings[name] for name in SUBJECTS if name in all_findings}, quick=quick)
    print(done.write(out))
    print(picture.draw(done, out / picture.FILE))


def _table(subject: str, findings: list[Finding]) -> Table:
    table = Table(subject, "median", "", title_justify="left")
    for found in findings:
        table.add_row(*cells(found))
    return table

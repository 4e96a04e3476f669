"""Put what was measured into the pages of the methods: a picture on moons, and the method's rows of two tables.

    gedi table family --first-seed 200 --seeds 1 --out OUT/shapes
    gedi table family-images --first-seed 200 --seeds 1 --out OUT/images
    python benchmarks/walks.py --out OUT/walks.json
    python benchmarks/densities.py --out OUT/dens
    python benchmarks/methods.py OUT [--seed 200]

It runs nothing: cells that are not done are said to be missing. Everything between the marks of docs/methods.md and
docs/methods/*.md is written anew; what stands around it is by hand.
"""

import argparse
import json
import re
import shutil
from pathlib import Path

import torch
from PIL import Image

from gedi.building import walk_settings
from gedi.directory import RunDirectory
from gedi.evaluation import matched
from gedi.methods import has_density, with_method
from gedi.report import figures
from gedi.tables import TABLES, Cell, write_table
from gedi.trained import training_of

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
COLOURS = 48  # of a picture: half the bytes, and no eye sees it
#: Pages that are no method by name, but a pair of parts.
PAIRS = {"gedi-flow": "SwAV (GEDI) with flow", "gedi-vae": "SwAV (GEDI) with VAE"}


def fill(page: Path, text: str) -> None:
    """Replace what is between the marks."""
    whole = page.read_text()
    if BEGIN not in whole or END not in whole:
        raise SystemExit(f"{page} must hold {BEGIN} and {END}")
    page.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{text}\n{END}", whole, flags=re.DOTALL))


def picture(run: RunDirectory, path: Path) -> Path:
    """Truth, clusters found, and the density with walks and its samples, where there is one."""
    points, config = run.points(), with_method(run.config())
    fitted = run.fitted()
    drawn = has_density(config)
    figure, axes = figures.new_figure(4 if drawn else 2, size=2.1)
    box, test = fitted.box, points["test"]
    found = torch.from_numpy(matched(points["shown_labels"].numpy(), points["shown"].numpy()))
    nmi = run.results()["metrics"]["nmi"]
    figures.scatter(axes[0], test, points["shown_labels"], "ground truth", box)
    figures.scatter(axes[1], test, found, f"found (NMI {nmi:.2f})", box)
    if drawn:
        starts = test[torch.linspace(0, len(test) - 1, 6).long()]
        figures.landscape(axes[2], fitted.energy, box, walk_settings(config), starts, "density, walks")
        figures.scatter(axes[3], points["samples"], None, "samples", box)
    figures.save(figure, path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path


def lines(text: str) -> tuple[list[str], list[list[str]], list[str]]:
    """Header, rows and notes of a table in Markdown."""
    every = text.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in every if line.startswith("|")]
    notes = [line for line in every if line and not line.startswith(("|", "#", "!["))]
    return (rows[0], rows[2:], notes) if rows else ([], [], notes)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table of the columns in which there is something."""
    used = [i for i in range(len(head)) if any(row[i] for row in rows)]
    body = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row[i] for i in used) + " |" for row in body)


def run_of(cells: list[Cell], row: str, column: str, out: Path) -> RunDirectory | None:
    """The finished run of a cell, or of one that trains the same."""
    from gedi.tables.engine import _config  # what a cell trains is the engine's to say

    asked = next(cell for cell in cells if (cell.row, cell.column) == (row, column))
    others = (cell for cell in cells if cell.row == row and cell != asked and _alike(_config, cell, asked))
    for cell in (asked, *others) if not _done(out, asked) else (asked,):
        if _done(out, cell):
            return RunDirectory(out / "cells" / cell.folder)
    return None


def _done(out: Path, cell: Cell) -> bool:
    return (out / "cells" / cell.folder / "results.json").is_file()


def _alike(config, one: Cell, other: Cell) -> bool:
    try:
        return training_of(config(one, "laptop")) == training_of(config(other, "laptop"))
    except Exception:  # a cell that cannot be run is like no other
        return False


def of_densities(out: Path) -> list[str]:
    """What the two scripts on densities have found, as far as they came."""
    parts, walks, images = [], out / "walks.json", out / "dens" / "densities.json"
    if walks.is_file():
        found = json.loads(walks.read_text())
        head = ["trained alone", *dict.fromkeys(key for figures_of in found.values() for key in figures_of)]
        rows = [[name, *(_short(figures_of.get(key)) for key in head[1:])] for name, figures_of in found.items()]
        parts += [
            "### Walks and samples",
            "`python benchmarks/walks.py`, seed 200, 1,000 test points:",
            markdown(head, rows),
        ]
    if images.is_file():
        found = json.loads(images.read_text())
        about = found.pop("about")
        head = ["density", *dict.fromkeys(key for name in found if name != "data" for key in found[name])]
        rows = [
            [name, *(_short(found[name].get(key)) for key in head[1:])] for name in sorted(found, key=_by_fid(found))
        ]
        said = (
            f"`python benchmarks/densities.py --data {about['data']} --seconds {about['seconds']:g}`, seed "
            f"{about['seed']}, {about['samples']} samples, features of a {about['network']}:"
        )
        parts += ["### Images at equal time", said, markdown(head, rows)]
        shutil.copy(out / "dens" / "densities.png", DOCS / "images" / "densities.png")
        parts += ["![samples of each density, under the data](images/densities.png)"]
    return parts


def _by_fid(found):
    return lambda name: next(value for key, value in found[name].items() if key.startswith("fid"))


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def main() -> None:
    """Fill every page."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=200)
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + 1)
    shapes, images = given.out / "shapes", given.out / "images"
    head, rows, notes = lines(write_table("family", profile="laptop", seeds=seeds, out=shapes, done=True))
    image_head, image_rows, image_notes = lines(
        write_table("family-images", profile="laptop", seeds=seeds, out=images, done=True)
    )
    cells = TABLES["family"].cells(seeds, "laptop")
    for page in sorted((DOCS / "methods").glob("*.md")):
        name = page.stem
        column = PAIRS.get(name, name)
        run = run_of(cells, "moons", column, shapes)
        parts = []
        if run is not None:
            drawn = picture(run, DOCS / "images" / "methods" / f"{name}.png")
            parts.append(f"![{name} on moons](../images/methods/{drawn.name})")
        objective, _, density = column.partition(" with ")
        own = [row for row in rows if row[1] == objective and row[head.index("density")] == density]
        of_images = [row for row in image_rows if row[1] == name]
        parts += [markdown(head, own)] if own else []
        parts += [markdown(image_head, of_images)] if of_images else []
        said = f"`gedi table family`, seed {given.seed}; short runs, [what they are](../methods.md#what-was-measured)."
        parts.append(said if own or of_images else "Not measured.")
        fill(page, "\n\n".join(parts))
    missing = len(cells) - len(rows)
    said = f"{len(rows)} of {len(cells)} cells were run; those without a line were not."
    body = [f"`gedi table family --first-seed {given.seed} --seeds 1`. {said}" if missing else "", markdown(head, rows)]
    body += [" ".join(notes)]
    body += of_densities(given.out)
    if image_rows:
        body += [f"`gedi table family-images --first-seed {given.seed} --seeds 1`:", markdown(image_head, image_rows)]
        body += [" ".join(image_notes)]
    fill(DOCS / "methods.md", "\n\n".join(filter(None, body)))


if __name__ == "__main__":
    main()

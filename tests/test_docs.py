"""The pages: every command that they print can be typed as it stands."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from gedi import cli
from gedi.evaluating import PARTS
from gedi.presets import preset
from gedi.tables import CLUSTERING, FEW_SUMS, OUTLIERS, TABLES, clustering, few_sums, outliers
from gedi.trained import check_method

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
PROGRAM = typer.main.get_command(cli.app)
#: What a page writes for a reader's own.
PLACES = {"RUN", "NAME", "PRESET", "CONFIG.yaml", "DATA"}
#: A part that a page has its reader write, with the file to write it into.
OWN_PARTS = {"stage2.terms.variance": "gedi/objectives/variance.py"}


def commands(page):
    """What follows ``gedi`` in code blocks and between backticks, comments left out."""
    text = page.read_text()
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.split(" #")[0] for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    for line in (*lines, *(" ".join(span.split()) for span in spans)):
        found = re.search(
            r"(?:^|[ /])gedi ((?:run|table|evaluate|presets|report|bench|data|fit|predict|score|embed|sample)\b.*)",
            line,
        )
        if found:
            yield found[1].split(" && ")[0].strip()


TYPED = sorted({(page.name, command) for page in PAGES for command in commands(page)})


def test_there_are_commands_to_check():
    assert len(TYPED) > 40


@pytest.mark.parametrize(("page", "command"), TYPED, ids=[f"{page}: gedi {command}" for page, command in TYPED])
def test_a_printed_command_can_be_typed(page, command, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setattr("gedi.parts._allowed", set())
    for part, file in OWN_PARTS.items():
        if part in command:
            assert page == "CONTRIBUTING.md"
            assert file in (ROOT / page).read_text()
            return
    name, *words = shlex.split(command)
    if not words:
        assert name in PROGRAM.commands  # named, not typed
        return
    group = PROGRAM.commands[name]
    if hasattr(group, "commands"):  # gedi data
        assert words[0] in group.commands
        return
    given = group.make_context(name, list(words)).params
    if name == "run" and given["target"] not in PLACES and Path(given["target"]).suffix != ".yaml":
        check_method(cli._config(given["target"], given["profile"], given["seed"], given["settings"] or []))
    elif name == "table" and given["name"] == CLUSTERING:
        assert set(given["only"] or ()) <= set(clustering.DATA)
    elif name == "table" and given["name"] == OUTLIERS:
        assert set(given["only"] or ()) <= set(outliers.DATA)
    elif name == "table" and given["name"] == FEW_SUMS:
        assert set(given["only"] or ()) <= set(few_sums.ROWS)
    elif name == "table":
        cells = TABLES[given["name"]].cells(range(1), given["profile"])
        assert set(given["only"] or ()) <= {x for cell in cells for x in (cell.row, cell.column)}
    elif name == "presets" and given["name"] not in {None, *PLACES}:
        preset(given["name"])
    elif name == "evaluate":
        assert set(given["part"] or ()) <= set(PARTS)


def test_every_method_of_the_family_has_its_page_with_a_picture_and_its_row():
    from gedi.tables.family import METHODS

    pages = {page.stem: page.read_text() for page in (ROOT / "docs" / "methods").glob("*.md")}
    assert set(pages) == {*METHODS, "gedi-flow", "gedi-vae"}
    listed = (ROOT / "docs" / "methods.md").read_text()
    for name, text in pages.items():
        assert f"(methods/{name}.md)" in listed, name
        assert all(word in text for word in ("**Good for.**", "**Source.**", "<!-- measured -->")), name
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
            path = (ROOT / "docs" / "methods" / picture).resolve()
            assert path.is_file(), picture
            assert path.stat().st_size < 60_000, picture

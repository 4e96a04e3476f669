"""Lines through points, targets, and what a record keeps of them."""

import numpy as np
import pytest

from gedi.bench.findings import Figure, LeftOut, Ratio, growth
from gedi.bench.present import cells, fill, markdown
from gedi.bench.record import Record, read, record
from gedi.errors import UserError


def ratio(value, **target):
    return Ratio("step", "step", "bare passes", "cost", value, value, value, value, 3.0, 2.0, **target)


def test_the_line_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    x = [1, 10, 20, 40]
    y = [7 + 3 * a + float(rng.normal()) for a in x]
    found = growth("step", "T", "ms", x, y)
    design = np.stack([x, np.ones(4)], axis=1)
    slope, intercept = np.linalg.lstsq(design, np.array(y), rcond=None)[0]
    assert (found.slope, found.intercept) == pytest.approx((slope, intercept))
    assert found.r_squared == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


def test_a_parabola_is_not_called_a_line():
    x = [1, 2, 4, 8, 16, 32]
    assert growth("step", "T", "ms", x, [a**2 for a in x]).r_squared < 0.96
    assert growth("step", "T", "ms", x, [5.0] * 6).r_squared == pytest.approx(1)


@pytest.mark.parametrize(
    ("target", "value", "reached"),
    [
        ({}, 9.0, None),
        ({"at_most": 1.15}, 1.15, True),
        ({"at_most": 1.15}, 1.16, False),
        ({"at_least": 3.0}, 2.9, False),
        ({"at_least": 3.0}, 3.1, True),
    ],
)
def test_a_target_is_reached_or_missed(target, value, reached):
    found = ratio(value, **target)
    assert found.reached is reached
    assert ("missed" in cells(found)[2]) == (reached is False)


def test_a_record_comes_back_as_it_was_written(tmp_path):
    line = growth("step", "T", "ms", [1, 2, 3], [1.0, 2.0, 3.5])
    findings = {"steps": [ratio(1.25, at_most=1.15), Figure("share", 0.5, "%")], "growth": [line], "logic": []}
    written = record({**findings, "samplers": [LeftOut("torchebm", "not installed")]}, quick=True)
    written.write(tmp_path)
    again = read(tmp_path)
    assert again.of(Ratio) == written.of(Ratio)
    assert again.of(LeftOut) == written.of(LeftOut)
    assert again.machine == written.machine
    assert again.quick
    assert again.versions["torch"].startswith("2.")
    assert markdown(again) == markdown(written)
    assert "| step, 3 ms | bare passes, 2 ms | **1.25** | 1.25 to 1.25 | at most 1.15: missed |" in markdown(again)


def test_tables_go_between_the_marks_of_a_page_and_the_rest_stays(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- gedi bench -->\nold\n<!-- end of gedi bench -->\nafter\n")
    machine = {"processor": "p", "cores": 2, "memory_gib": 4.0, "threads": 1}
    fill(page, Record({"steps": [Figure("share", 0.5, "%")]}, machine, {"torch": "2"}, False))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "| share | 0.50 % |" in text
    assert "old" not in text
    page.write_text("nothing here")
    with pytest.raises(UserError, match="add them"):
        fill(page, Record({}, machine, {}, False))


def test_a_folder_without_a_record_is_said(tmp_path):
    with pytest.raises(UserError, match="run: gedi bench"):
        read(tmp_path)

"""The paper's tables and figures, published figures beside ours."""

from collections.abc import Sequence
from pathlib import Path

from gedi.errors import UserError, unknown
from gedi.names import PROFILES
from gedi.tables.addition import ADDITION_TABLES
from gedi.tables.family import FAMILY_TABLES
from gedi.tables.images import IMAGE_TABLES
from gedi.tables.rsbench import RSBENCH_TABLES
from gedi.tables.spec import Cell, TableSpec
from gedi.tables.toy import TOY_TABLES

TABLES: dict[str, TableSpec] = {**TOY_TABLES, **ADDITION_TABLES, **IMAGE_TABLES, **FAMILY_TABLES, **RSBENCH_TABLES}
CLUSTERING, OUTLIERS, FEW_SUMS = "clustering", "outliers", "few-sums"  #: of no paper, and not a line for each run
NAMES = (*TABLES, CLUSTERING, OUTLIERS, FEW_SUMS)

__all__ = ["NAMES", "TABLES", "Cell", "TableSpec", "write_table"]


def write_table(
    name: str,
    *,
    profile: str,
    seeds: range,
    out: Path | None = None,
    jobs: int | None = None,
    data_dir: Path | None = None,
    only: Sequence[str] = (),
    done: bool = False,
    precision: str | None = None,
) -> str:
    """Run what is missing of a table, unless only what is ``done`` is wanted, and write it; returns the Markdown."""
    if name not in NAMES:
        raise unknown("table", name, NAMES)
    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    if done and name not in TABLES:
        raise UserError(f"table {name} keeps no runs, so that nothing of it is done before it is run: leave out --done")
    if precision is not None and name not in TABLES:
        raise UserError(f"table {name} is computed in one precision: leave out --precision")
    if name == CLUSTERING:
        from gedi.tables import clustering

        return clustering.write_table(seeds=seeds, out=out or Path("tables") / name, only=only)
    if name == OUTLIERS:
        from gedi.tables import outliers

        return outliers.write_table(seeds=seeds, out=out or Path("tables") / name, data_dir=data_dir, only=only)
    if name == FEW_SUMS:
        from gedi.tables import few_sums

        return few_sums.write_table(seeds=seeds, out=out or Path("tables") / name, data_dir=data_dir, only=only)
    from gedi.tables import engine

    spec = TABLES[name]
    out = out or Path("tables") / (spec.folder or name)
    return engine.write_table(
        spec, name, profile=profile, seeds=seeds, out=out, jobs=jobs, data_dir=data_dir, only=only, done=done,
        precision=precision or engine.FULL,
    )  # fmt: skip

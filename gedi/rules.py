"""The constraint that a config names."""

from pathlib import Path

from gedi.config import ConstraintConfig
from gedi.errors import UserError
from gedi.logic import Constraint, all_different, sorted_, sums_to


def build_constraint(settings: ConstraintConfig, symbols: int) -> Constraint | None:
    """The constraint over groups of ``symbols`` symbols each, or None."""
    domain = range(symbols)
    if settings.rule is None:
        return None
    if settings.rule == "addition":
        return sums_to(2, domain)
    if settings.rule == "all-different":
        return all_different(settings.variables, domain)
    if settings.rule == "sorted":
        return sorted_(settings.variables, domain)
    if settings.path is None:
        raise UserError(f"constraint.rule={settings.rule} needs constraint.path, the file to read")
    if not Path(settings.path).is_file():
        raise UserError(f"constraint.path must name a file, but {settings.path!r} is not there")
    if settings.rule == "cnf":
        return Constraint.from_cnf(Path(settings.path), variables=[symbols] * settings.variables)
    constraint = Constraint.from_problog(Path(settings.path), settings.query)  # a stranger's: it loads nothing
    if constraint.queries is not None:
        raise UserError(f"constraint.query must name one of {', '.join(constraint.queries)}")
    return constraint


def check_constraint(constraint: Constraint, symbols: int, group_size: int, groups: int) -> None:
    """A constraint must be one, and speak of groups as they come and of the symbols there are."""
    if not isinstance(constraint, Constraint):
        raise UserError(f"constraint must be a gedi.logic.Constraint, got {type(constraint).__name__}")
    constraint.one_query("training")
    if len(constraint.domains) != group_size:
        raise UserError(
            f"a constraint over {len(constraint.domains)} variables needs groups of as many points, got groups of "
            f"{group_size}; see data.group_size"
        )
    if groups == 0:
        raise UserError(f"a constraint needs training points in groups of {group_size}, got 0 groups")
    if set(constraint.sizes) != {symbols}:
        raise UserError(
            f"every variable of the constraint must have the {symbols} symbols that the network tells apart, "
            f"got {constraint.sizes} values; see model.clusters"
        )

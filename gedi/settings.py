"""What every group of settings is made of: numbers that are numbers, frozen models that refuse unknown keys."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def number(value: Any) -> Any:
    """Only a number is one: ``true`` is not 1, the text ``"5"`` not 5. A whole 5.0 may stand for 5."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a valid number")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("must be a number below 2^63")
    return value


Whole = Annotated[int, BeforeValidator(number)]
Real = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(number)]
Positive = Annotated[Whole, Field(gt=0)]
Count = Annotated[Whole, Field(ge=0)]
Width = Annotated[Real, Field(gt=0)]
Amount = Annotated[Real, Field(ge=0)]
Share = Annotated[Real, Field(ge=0, le=1)]
Switch = Annotated[bool, Field(strict=True)]
Place = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]

#: Settings as plain data.
Settings = dict[str, Any]


class Section(BaseModel):
    """A frozen group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Settings:
    """``base`` with ``changes`` laid over it, section by section."""
    if "kind" in changes and changes["kind"] != base.get("kind"):
        return dict(changes)  # another part: settings of the one before do not fit it
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return merged

"""Named settings: each is only its differences from the defaults, with the reason."""

from collections.abc import Mapping
from typing import Any

from gedi.errors import UserError, unknown
from gedi.names import PROFILES
from gedi.presets.addition import ADDITION_PRESETS
from gedi.presets.energies import ENERGY_PRESETS
from gedi.presets.images import IMAGE_PRESETS
from gedi.presets.rsbench import RSBENCH_PRESETS
from gedi.presets.sums import SUM_PRESETS
from gedi.presets.table import TABLE_PRESETS
from gedi.presets.toy import TOY_PRESETS
from gedi.renamed import VERSION_KEY, renamed, written_by_0_1
from gedi.settings import merge

RECIPE = "toy"  #: the name of settings that follow no preset
PRESETS: dict[str, dict[str, Any]] = {
    **TOY_PRESETS,
    **TABLE_PRESETS,
    **ADDITION_PRESETS,
    **SUM_PRESETS,
    **RSBENCH_PRESETS,
    **IMAGE_PRESETS,
    **ENERGY_PRESETS,
}


def preset(name: str, profile: str | None = None) -> dict[str, Any]:
    """The settings of a preset; profile ``paper`` is the preset's ``-paper`` sibling.

    Example:
        >>> preset("circles")["data"]
        {'name': 'circles'}
    """
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    check_profile(profile)
    if profile == "paper" and not name.endswith("-paper"):
        if f"{name}-paper" not in PRESETS:
            raise UserError(f"preset {name!r} has no paper profile: the paper does not use this data set")
        name = f"{name}-paper"
    return merge({"preset": name}, PRESETS[name])


def check_profile(profile: str | None) -> None:
    """Refuse a profile that there is not."""
    if profile not in (None, *PROFILES):
        raise unknown("profile", str(profile), PROFILES)


def completed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings laid over those of the preset that they name, or over the recipe; complete ones stand for themselves.

    Example:
        >>> completed({"preset": "circles", "seed": 3})["data"]
        {'name': 'circles'}
    """
    name = settings.get("preset", RECIPE)
    if not isinstance(name, str):
        raise UserError(f"preset must be a name, got {type(name).__name__}; gedi presets lists them")
    check_preset(name)
    complete = VERSION_KEY in settings or written_by_0_1(settings)
    return dict(settings) if complete else merge(preset(name), renamed(settings))


def check_preset(name: str) -> None:
    """A run is named by a preset there is, or by the bare recipe: results of a name that is none would mislead."""
    if name != RECIPE and name not in PRESETS:
        raise unknown("preset", name, PRESETS)

"""Named settings: each is only its differences from the defaults, with the reason."""

from typing import Any

from gedi.config import merge
from gedi.errors import UserError, unknown
from gedi.names import PROFILES
from gedi.presets.addition import ADDITION_PRESETS
from gedi.presets.images import IMAGE_PRESETS
from gedi.presets.toy import TOY_PRESETS

PRESETS: dict[str, dict[str, Any]] = {**TOY_PRESETS, **ADDITION_PRESETS, **IMAGE_PRESETS}


def preset(name: str, profile: str | None = None) -> dict[str, Any]:
    """The settings of a preset; profile ``paper`` is the preset's ``-paper`` sibling.

    Example:
        >>> preset("circles")["data"]
        {'name': 'circles'}
    """
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    if profile is not None and profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    if profile == "paper" and not name.endswith("-paper"):
        if f"{name}-paper" not in PRESETS:
            raise UserError(f"preset {name!r} has no paper profile: the paper does not use this data set")
        name = f"{name}-paper"
    return merge({"preset": name}, PRESETS[name])

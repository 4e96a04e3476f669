"""Named settings: each is only its differences from the defaults, with the reason."""

from typing import Any

from gedi.config import merge
from gedi.errors import UserError, unknown
from gedi.presets.addition import ADDITION_PRESETS
from gedi.presets.images import IMAGE_PRESETS
from gedi.presets.toy import TOY_PRESETS

PROFILES = ("laptop", "paper")
PRESETS: dict[str, dict[str, Any]] = {**TOY_PRESETS, **ADDITION_PRESETS, **IMAGE_PRESETS}


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

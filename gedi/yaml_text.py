"""Settings as YAML text: plain data only, every key once, and ``1e-3`` is a number."""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from gedi.errors import UserError

LONGEST = 1_000_000  # characters; a complete config has five thousand
_DEEPEST = 50  # of sections in sections; a config has four
_MOST = 100_000  # values, those that an alias repeats counted each time
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")  # YAML 1.1 wants a point and a sign, and calls 1e-3 a text


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(problem=f"the key {key.value!r} stands twice")
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes a text that the loader would take for a number."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("+-.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("+-.0123456789"))


def read_yaml(text: str, name: str) -> Any:
    """Plain data from YAML; whatever is wrong with the text becomes one line that begins with its name.

    Example:
        >>> read_yaml("walk: {steps: 5, radius: 5e-2}", "mine.yaml")
        {'walk': {'steps': 5, 'radius': 0.05}}
    """
    if len(text) > LONGEST:
        raise UserError(f"{name} must be settings, got {len(text)} characters of text")
    try:
        data = yaml.load(text, _Loader)  # a SafeLoader: it makes plain data and runs no code
    except RecursionError:
        raise UserError(f"{name} cannot be read as YAML: it is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        # a date that is none, a number too long, a tag that does not fit: the loader lets them through as they come
        reason = getattr(error, "problem", None) or next(iter(str(error).splitlines()), type(error).__name__)
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise UserError(f"{name} cannot be read as YAML: {reason}{where}") from None
    if _size(data, _DEEPEST, _MOST) <= 0:
        raise UserError(f"{name} must be settings, got data nested too deeply, or repeated by aliases without end")
    return data


def write_yaml(data: Any) -> str:
    """Text that :func:`read_yaml` takes back."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False)


def _size(data: Any, depth: int, left: int) -> int:
    """How many values may still come; 0 when there are too many. Aliases can make a few lines exponentially many."""
    if depth == 0:
        return 0
    below = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else ()
    left -= 1
    for value in below:
        if left <= 0:
            return 0
        left = _size(value, depth - 1, left)
    return left

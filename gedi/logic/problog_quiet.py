"""Importing problog changes nothing but what is imported."""

import contextlib
import sys
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_import() -> Iterator[None]:
    """Import problog without its warnings, which are not ours to mend, and keep Python's recursion limit.

    problog raises the limit when it is imported; here it is raised only while problog runs.
    """
    limit = sys.getrecursionlimit()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.setrecursionlimit(limit)

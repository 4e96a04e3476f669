"""A computation that cannot take more time or memory than it may: it runs in a child process.

One operation of a library can outlast any check between operations, and a C library that finds no memory ends the
process it is in. A forked child starts in milliseconds, knows everything its parent knows, and dies alone.
"""

import contextlib
import gc
import os
import pickle
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from gedi.errors import UserError
from gedi.logic.limits import GIGABYTE, Budget, Limits

T = TypeVar("T")
_GRACE = 0.3  # seconds after the limit in which the child may still say itself, in better words, that time ran out
_HEADER = 8  # bytes that tell how many follow
_SLACK = GIGABYTE // 2  # above the limit that the parent watches
_LOOK = 0.05  # seconds between two looks at the child's memory


def bounded(compute: Callable[[], T], budget: Budget) -> T:
    """The result of a computation, or a UserError if it takes more than the budget has left.

    Where processes cannot be forked (Windows) it runs here, and only what it checks itself limits it.

    Args:
        compute: no arguments; its result must be picklable. What it changes in memory is lost.
        budget: the limits and the words for the message.
    """
    if not hasattr(os, "fork"):
        try:
            return compute()
        except MemoryError:
            raise budget.too_much_memory() from None
    reading, writing = os.pipe()
    room = _memory(os.getpid()) + budget.limits.gigabytes * GIGABYTE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: the child starts none
        child = os.fork()
    if child == 0:
        _answer(compute, writing, budget.limits, room)
    os.close(writing)
    try:
        said = _listen(reading, time.monotonic() + budget.left + _GRACE, lambda: _memory(child) > room)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    if said is None:
        raise budget.too_long()
    if not said:  # a child that ends without a word was ended: by a library without memory, or by the system
        raise budget.too_much_memory()
    kind, content = pickle.loads(said)
    if kind == "refused":
        raise UserError(content)
    if kind == "failed":
        raise RuntimeError(content)
    result: T = content
    return result


def _listen(reading: int, until: float, is_too_large: Callable[[], bool]) -> bytes | None:
    """What a child says: empty if it ended in the middle or took too much, None if it was not done in time."""
    heard = bytearray()
    while len(heard) < _HEADER or len(heard) < _HEADER + int.from_bytes(heard[:_HEADER], "big"):
        left = until - time.monotonic()
        if left < 0:
            return None
        if not select.select([reading], [], [], min(left, _LOOK))[0]:
            # looked at from outside: Python 3.11 may spin for ever where its last byte is gone
            if is_too_large():
                return b""
            continue
        piece = os.read(reading, 1 << 20)
        if not piece:
            return b""
        heard += piece
    return bytes(heard[_HEADER:])


def _memory(process: int) -> int:
    """Bytes of address space of a process; 0 where the system does not tell."""
    try:
        with open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _answer(compute: Callable[[], Any], writing: int, limits: Limits, room: float) -> NoReturn:
    """The child: compute, say the result, and end without a trace."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        gc.freeze()  # nothing of the parent's is looked at, so nothing is copied
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        _confine(limits, room)
        try:
            said: tuple[str, Any] = ("done", compute())
        except UserError as error:
            said = ("refused", str(error))
        except MemoryError:
            os._exit(1)
        except BaseException:
            said = ("failed", traceback.format_exc())
        content = pickle.dumps(said, protocol=5)
        rest = memoryview(len(content).to_bytes(_HEADER, "big") + content)
        while rest:
            rest = rest[os.write(writing, rest) :]
    finally:
        os._exit(0)  # what the parent registered for its own end is not the child's


def _confine(limits: Limits, room: float) -> None:
    """Limits that the system holds this process to."""
    import resource

    def limit(what: int, most: float) -> None:
        hard = resource.getrlimit(what)[1]
        if most < float("inf") and (hard == resource.RLIM_INFINITY or most < hard):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(what, (int(most), hard))

    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_CPU, limits.seconds + 5)  # should the parent be killed, the child does not stay
    if sys.platform == "linux":
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # if the whole machine runs out of memory, this process goes first
        limit(resource.RLIMIT_AS, room + _SLACK)  # for a single step too large to be seen in time

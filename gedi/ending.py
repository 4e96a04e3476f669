"""How the program ends: for every way it can, an exit code and one line that says why.

| code | because |
|---|---|
| 0 | all is done |
| 1 | a fault of gedi itself; ``GEDI_TRACEBACK=1`` shows where |
| 2 | what was given cannot work: arguments, settings, files, memory |
| 3 | the training diverged |
| 4 | another process of the run is gone |
| 130, 143 | Ctrl-C, SIGTERM |
| 141 | nobody reads what is printed any more |

Imports nothing that takes long: a signal may come before the rest of the program is there.
"""

import atexit
import json
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from gedi.errors import DivergenceError, EndedElsewhere, ProcessLost, UserError

_WORD, _LINE = 400, 4000  # letters that are shown: what was given may be longer than anyone would read
_signals: list[int] = []  # what the program was asked to end by
_kept: list[object] = []  # what is not taken apart before the program is gone


def run_to_its_end(program: Callable[[], object]) -> int:
    """Run a program, say in one line what stopped it if anything did, and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot write is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            program()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except SystemExit as error:  # who exits has said why
        if isinstance(error.__context__, BrokenPipeError):  # rich's way of ending then
            return 141
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BrokenPipeError:
        _print_nowhere()
        return 141
    except BaseException as error:
        if _kept:
            _kept.append(error)  # and what its frames hold
        if _signals:  # thrown in by a signal, and come out as something else
            return 128 + _signals[0]
        code, line = _explained(error)
        if line:
            with suppress(OSError):
                print(line, file=sys.stderr)
        return code
    return 0


def end_without_taking_apart(thing: object) -> None:
    """Keep a thing until the program is gone, and let the program go without Python taking anything apart.

    Processes that train together are joined by threads of Gloo. Its destructor waits for such a thread, which may wait
    for Python's lock, which the waiting destructor holds: a run could hang after its last word, or be aborted.
    """
    _kept.append(thing)


def end_with(code: int) -> NoReturn:
    """End the program with a code, after all that was to be done at its exit."""
    if not _kept:
        sys.exit(code)
    atexit._run_exitfuncs()  # what os._exit leaves out: loggers' last lines, for one
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def one_line(text: str) -> str:
    r"""Text as one line that no terminal takes for a command, and that is not too long to read.

    Example:
        >>> print(one_line("two\nlines and a \x1b[31mcolour"))
        two lines and a \x1b[31mcolour
    """
    joined = " ".join(part.strip() for part in text.splitlines() if part.strip())
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in joined)
    return _clipped(" ".join(_clipped(word, _WORD) for word in shown.split(" ")), _LINE)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"


def go_on() -> str:
    """The command that goes on with this run."""
    same = [word for word in sys.argv[1:] if word not in ("--overwrite", "--resume")]
    return shlex.join(["gedi", *same, "--resume"])


def _explained(error: BaseException) -> tuple[int, str]:
    """Exit code and line of an error; no line where it has been said already."""
    if isinstance(error, EndedElsewhere):
        return 2, ""
    if isinstance(error, KeyboardInterrupt):
        return 130, "stopped"
    code, why = _reason(error)
    return code, f"gedi: {one_line(why)}"


def _reason(error: BaseException) -> tuple[int, str]:
    if isinstance(error, ProcessLost):
        return 4, f"{error}, so this one ends; go on from the last checkpoint with: {go_on()}"
    if isinstance(error, UserError):
        return 2, str(error)
    if isinstance(error, DivergenceError):
        return 3, str(error)
    if isinstance(error, OSError):
        return 2, _of_system(error)
    return _of_what_was_given(error) or (1, _of_fault(error))


def _of_system(error: OSError) -> str:
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return ": ".join([str(error.strerror or error), " to ".join(map(repr, names))] if names else [str(error)])


def _of_what_was_given(error: BaseException) -> tuple[int, str] | None:
    """Errors that are not ours but come of what we were given: too much of it, or damaged."""
    reason = str(error).strip().partition("\n")[0]
    if isinstance(error, MemoryError) or "t allocate memory" in reason or "out of memory" in reason:
        return 2, f"there is not enough memory: {reason or 'less data, smaller batches or a smaller network need less'}"
    if isinstance(error, RecursionError):
        return 2, f"what was given is nested too deeply: {reason}"
    if isinstance(error, json.JSONDecodeError):
        return 2, f"a file cannot be read as JSON: {reason}"
    if isinstance(error, UnicodeError):
        return 2, f"text cannot be read or written: {reason}"
    if isinstance(error, EOFError):
        return 2, f"a file ends too early: {reason or 'it is empty or cut short'}"
    if type(error).__module__.partition(".")[0] == "yaml":
        return 2, f"a file cannot be read as YAML: {reason}"
    return None


def _of_fault(error: BaseException) -> str:
    if os.environ.get("GEDI_TRACEBACK"):
        traceback.print_exception(error)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"this is a fault of gedi, not yours: {said}; run it with GEDI_TRACEBACK=1 to see where, and report that"


def _print_nowhere() -> None:
    """Python writes out what is left when it ends: that must not fail once more."""
    with suppress(OSError, ValueError, AttributeError):  # a stream that is closed, or no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end_on_signals() -> None:
    """From now on Ctrl-C and SIGTERM end the program with one line and code 130 or 143, whatever it is doing.

    The stack unwinds, so that half-written files are removed. Not so in an import: an exception thrown into one may
    come out as another or not at all, and an import writes nothing. A second signal ends the program at once.
    """
    owner = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() != owner:  # a forked process: this one speaks for it
            os._exit(128 + number)
        _set_signals(signal.SIG_DFL)
        _signals.append(number)
        if os.environ.get("LOCAL_RANK", "0") == "0":  # one of several processes speaks for all
            with suppress(OSError):
                os.write(2, b"stopped\n")  # print may be at work already
        if _importing(frame):
            os._exit(128 + number)
        raise SystemExit(128 + number)

    _set_signals(end)


def ignore_signals() -> None:
    """For the last moments, when all is done and said: the exit code shall say how that went."""
    _set_signals(signal.SIG_IGN)


def _set_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


@contextmanager
def ended_with_this_one() -> Iterator[None]:
    """Whatever ends this block early also ends the processes that were started from here, so that nobody waits."""
    try:
        yield
    except BaseException:
        import multiprocessing  # here: it is slow to import, and who comes here has it already

        for child in multiprocessing.active_children():
            child.terminate()
        raise


@contextmanager
def ctrl_c_held() -> Iterator[None]:
    """Ctrl-C waits until the end of this block; processes started in it never see one, as their parent ends them."""
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    # the mask is for this thread and what it starts; where there are others, they catch it, and the handler is told
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
    if held:
        signal.raise_signal(signal.SIGINT)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False

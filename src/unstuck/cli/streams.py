"""stdin, stdout and stderr as they are in the world: closed, full, or without a letter. Light: help imports it."""

from __future__ import annotations

import os
import sys

# A name that type checkers take for true, without the price of importing `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, TextIO


class AnswerLost(Exception):
    """stdout does not take what it is given; said apart from other files' errors, which are not about the answer."""


class Stdout:
    """stdout that tells its own errors apart."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise AnswerLost(error.strerror) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise AnswerLost(error.strerror) from error


def reopen_closed() -> None:
    """A service manager may start a worker with closed descriptors; Python then has None where streams should be.

    Each gets its own number back, lowest first: a database that is opened as number 1 would be printed into.
    """
    for number, name, how in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), how))


def take_any_letter() -> None:
    """A terminal that knows only ASCII gets question marks, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")


def forget(stream: TextIO) -> None:
    """What it could not take is tried again with everything later, and at exit: let it go into nothing."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def tell(text: str) -> None:
    """A remark on stderr. One that cannot be written changes nothing; the exit code has to do."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        forget(sys.stderr)

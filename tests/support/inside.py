"""A command inside of this process: with its own directory, environment and streams while it runs, and none of them
left behind. For commands that start no thread that outlives them, take no signals and import no code of a user's."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from traceback import print_exc
from typing import IO, Any

from unstuck.cli.main import main


def can_run() -> bool:
    """What it changes is the whole process's: only one at a time, and nobody beside it who starts another."""
    return threading.current_thread() is threading.main_thread()


def run(words: Sequence[str], directory: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with ExitStack() as stack:
            for number, name, file in ((1, "stdout", out), (2, "stderr", err)):
                stack.enter_context(_stream(number, name, file))
            stack.enter_context(_no_stdin())
            stack.enter_context(_around(directory, environment))
            code = _code_of(words)
        return subprocess.CompletedProcess(list(words), code, _text(out), _text(err))


def _code_of(words: Sequence[str]) -> int:
    try:
        return main(list(words))
    except SystemExit as exit:
        return exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except Exception:
        print_exc()
        return 1


@contextmanager
def _stream(number: int, name: str, file: IO[bytes]) -> Iterator[None]:
    """The descriptor too: not all that is said is said through Python."""
    ours = getattr(sys, name)
    ours.flush()
    kept = os.dup(number)
    os.dup2(file.fileno(), number)
    with open(number, "w", encoding="utf-8", closefd=False) as stream:
        setattr(sys, name, stream)
        try:
            yield
        finally:
            setattr(sys, name, ours)
            stream.flush()
            os.dup2(kept, number)
            os.close(kept)


@contextmanager
def _no_stdin() -> Iterator[None]:
    ours = sys.stdin
    with open(os.devnull) as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = ours


@contextmanager
def _around(directory: Path, environment: Mapping[str, str]) -> Iterator[None]:
    variables, place, path, words = dict(os.environ), os.getcwd(), list(sys.path), sys.argv
    os.chdir(directory)
    _replace(environment)
    sys.argv = ["unstuck"]
    try:
        yield
    finally:
        _replace(variables)
        os.chdir(place)
        sys.path[:] = path
        sys.argv = words


def _replace(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in environment.items() if os.environ.get(name) != value})


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode().replace("\r\n", "\n")
    return text

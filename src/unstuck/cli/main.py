"""unstuck …: find the command, run it, turn what went wrong into a sentence and an exit code."""

from __future__ import annotations

import os
import sys

from unstuck.cli import exits
from unstuck.cli.commands import NAMES, overview

# A name that type checkers take for true, without the price of importing `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unstuck.cli.parser import Command, Usage


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    _never_without_streams()
    _never_fail_on_a_letter()
    try:
        code = dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_went_away()
    except KeyboardInterrupt:
        code = exits.INTERRUPTED
    return code


def _never_without_streams() -> None:
    """A service manager may start a worker with closed descriptors; Python then has None where streams should be."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def dispatch(arguments: list[str]) -> int:
    """Serve what needs no command module at once; help is asked for often and should feel instant."""
    match arguments:
        case [] | ["-h" | "--help" | "help"]:
            print(overview())
            return exits.OK
        case ["--version" | "-V"] | ["version"]:
            return _version()
        case ["help", *rest]:
            return run([*rest, "--help"])
        case ["__complete", *words]:
            return _complete(words)
        case _:
            return run(arguments)


def run(arguments: list[str]) -> int:
    name, rest = arguments[0], arguments[1:]
    command = NAMES.get(name)
    if command is None:
        return _unknown_command(name)
    try:
        return load(command.module).run(f"unstuck {name}", rest)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        return report(error)


def load(module: str) -> Command:
    """The command that a module of this room serves."""
    from importlib import import_module

    command: Command = import_module(f"unstuck.cli.{module}").app
    return command


def report(error: Exception) -> int:
    """Say what happened, to which thing and what to do next; only a bug of ours shows a traceback."""
    from unstuck.cli.parser import Usage
    from unstuck.model.errors import UnstuckError

    if isinstance(error, Usage):
        return _usage(error)
    if isinstance(error, UnstuckError | PermissionError):
        print(f"unstuck: {error}", file=sys.stderr)
        return exits.code_of(error)
    return _bug(error)


def _usage(error: Usage) -> int:
    if error.prog is None:  # a group without a verb: its help says it all
        print(error, file=sys.stderr)
        return exits.USAGE
    print(f"unstuck: {error}\n{error.usage}Try: {error.prog} --help", file=sys.stderr)
    return exits.USAGE


def _bug(error: Exception) -> int:
    import traceback

    traceback.print_exception(error)
    print(
        f"\nunstuck: this is a bug in unstuck, not in what you did ({type(error).__name__}). Please report it with"
        " the lines above and the output of `unstuck version --json`.",
        file=sys.stderr,
    )
    return exits.BUG


def _unknown_command(name: str) -> int:
    from difflib import get_close_matches

    close = get_close_matches(name, NAMES, 1)
    hint = f"did you mean `unstuck {close[0]}`?" if close else "`unstuck --help` lists the commands"
    what = "option" if name.startswith("-") else "command"
    print(f"unstuck: there is no {what} {name}; {hint}", file=sys.stderr)
    return exits.USAGE


def _version() -> int:
    from unstuck.version import __version__

    print(f"unstuck {__version__}")
    return exits.OK


def _complete(words: list[str]) -> int:
    from unstuck.cli.completion import candidates

    for candidate in candidates(words):
        print(candidate)
    return exits.OK


def _never_fail_on_a_letter() -> None:
    """A terminal that knows only ASCII gets question marks, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")


def _reader_went_away() -> int:
    """`unstuck jobs list | head -1`: the reader has what it wanted. Python flushes once more at exit: let it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.OK

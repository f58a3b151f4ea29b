"""unstuck …: find the command, run it, turn what went wrong into a sentence and an exit code."""

from __future__ import annotations

import gc
import sys

from unstuck.cli import exits, streams
from unstuck.cli.commands import NAMES, load, overview

# A name that type checkers take for true, without the price of importing `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unstuck.cli.parser import Usage

#: New objects until Python looks for garbage: what is imported is none, and at every 700 of them a tenth of a start
#: goes into looking.
_FEW_COLLECTIONS = 20_000
#: Commands that live long enough to make garbage.
_STAYING = (["worker"], ["server"], ["dev"], ["demo"], ["bench"], ["top"])


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and arguments[:1] not in _STAYING:
        gc.set_threshold(_FEW_COLLECTIONS)
    streams.reopen_closed()
    streams.take_any_letter()
    before = sys.stdout
    sys.stdout = streams.Stdout(before)
    try:
        code = dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `unstuck jobs list | head -1`: the reader has what it wanted
        streams.forget(before)
        code = exits.OK
    except streams.AnswerLost as error:  # the reader must not take the piece that was written for the whole
        streams.forget(before)
        streams.tell(f"unstuck: the answer could not be written to stdout: {error}")
        code = exits.FAILURE
    except KeyboardInterrupt:
        code = exits.INTERRUPTED
    finally:
        sys.stdout = before
    return code


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
    except (BrokenPipeError, streams.AnswerLost, KeyboardInterrupt):
        raise
    except Exception as error:
        return report(error)


def report(error: Exception) -> int:
    """Say what happened, to which thing and what to do next; only a bug of ours shows a traceback."""
    from unstuck.cli.parser import Usage
    from unstuck.model.errors import UnstuckError, harmless

    if isinstance(error, Usage):
        return _usage(error)
    if isinstance(error, UnstuckError | PermissionError):
        streams.tell(f"unstuck: {harmless(str(error))}")
        return exits.code_of(error)
    return _bug(error)


def _usage(error: Usage) -> int:
    if error.prog is None:  # a group without a verb: its help says it all
        streams.tell(str(error))
        return exits.USAGE
    streams.tell(f"unstuck: {error}\n{error.usage}Try: {error.prog} --help")
    return exits.USAGE


def _bug(error: Exception) -> int:
    import traceback

    streams.tell(
        "".join(traceback.format_exception(error))
        + f"\nunstuck: this is a bug in unstuck, not in what you did ({type(error).__name__}). Please report it with"
        " the lines above and the output of `unstuck version --json`."
    )
    return exits.BUG


def _unknown_command(name: str) -> int:
    from difflib import get_close_matches

    from unstuck.model.errors import told

    close = get_close_matches(name, NAMES, 1)
    hint = f"did you mean `unstuck {close[0]}`?" if close else "`unstuck --help` lists the commands"
    what = "option" if name.startswith("-") else "command"
    streams.tell(f"unstuck: there is no {what} {told(name)}; {hint}")
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

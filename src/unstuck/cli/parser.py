"""Commands from functions: the signature says what a command takes, `Annotated` how it is spelled.

Options that several commands share are the fields of a dataclass; a parameter of that type takes them all.

A thin layer over argparse, because a command line must answer at once: argparse costs a few milliseconds where the
usual frameworks cost hundreds.
"""

from __future__ import annotations

import argparse
import inspect
import re
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from unstuck.model.errors import InvalidInput, quoted, told
from unstuck.records import dataclass

Function = TypeVar("Function", bound=Callable[..., Any])


class Usage(Exception):
    """The words do not fit the command; `prog` is what to ask for help, `usage` how it is called."""

    def __init__(self, message: str, prog: str | None = None, usage: str = "") -> None:
        super().__init__(message)
        self.prog = prog
        self.usage = usage


@dataclass(frozen=True)
class Option:
    """`--name`; a bool is a flag, a list may be repeated, `off` names the flag that says no."""

    names: tuple[str, ...]
    help: str | None = None
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    least: int | None = None
    most: int | None = None
    off: str | None = None


def option(*names: str, **facts: Any) -> Option:
    return Option(names, **facts)


@dataclass(frozen=True)
class Argument:
    """A word without a dash; with a default it may be left out, a list takes what is left."""

    metavar: str
    help: str | None = None


class Command:
    """One command, or a group of verbs."""

    def __init__(self, summary: str | None = None, default: str | None = None, remark: str | None = None) -> None:
        self.summary = summary
        #: What stands below the verbs in its help.
        self.remark = remark
        #: The verb that is meant when none is given.
        self.default = default
        self.verbs: dict[str, Callable[..., Any]] = {}

    def command(self, name: str | None = None) -> Callable[[Function], Function]:
        """Adds a verb; of a command without a summary, the command itself."""

        def add(function: Function) -> Function:
            self.verbs[name or function.__name__.rstrip("_")] = function
            return function

        return add

    @property
    def is_group(self) -> bool:
        return self.summary is not None

    def run(self, prog: str, words: Sequence[str]) -> int:
        if not self.is_group:
            [function] = self.verbs.values()
            return _run(function, prog, words)
        if words and words[0] in ("-h", "--help"):
            print(self.help(prog))
            return 0
        if self.default is not None and self._means_default(words):
            return _run(self.verbs[self.default], prog, words)
        if not words:
            raise Usage(self.help(prog))
        if words[0] not in self.verbs:
            raise Usage(self._unknown(prog, words[0]), prog)
        return _run(self.verbs[words[0]], f"{prog} {words[0]}", words[1:])

    def _means_default(self, words: Sequence[str]) -> bool:
        """No verb at all, an option in its place, or a word that is no verb where the default takes one."""
        if not words or words[0].startswith("-"):
            return True
        return words[0] not in self.verbs and bool(self.options(self.default)[1])

    def help(self, prog: str) -> str:
        lines = [f"  {name:<11} {_doc(function).split('. ')[0].rstrip('.')}" for name, function in self.verbs.items()]
        verb = "VERB" if self.default is None else "[VERB]"
        more = [] if self.default is None else ["", f"Without a verb: {self.default}."]
        more += [] if self.remark is None else ["", self.remark]
        return "\n".join([f"Usage: {prog} {verb} [ARGS]…", "", f"  {self.summary}", "", "Verbs:", *lines, *more])

    def options(self, verb: str | None) -> tuple[list[str], list[str]]:
        """The long options and the names of the arguments, for completion."""
        function = self.verbs[verb] if verb is not None else next(iter(self.verbs.values()))
        actions = _parser_of(function, "")._actions
        names = [name for action in actions for name in action.option_strings if action.help != argparse.SUPPRESS]
        return [n for n in names if n.startswith("--")], [a.dest for a in actions if not a.option_strings]

    def takes_value(self, verb: str | None, word: str) -> str | None:
        """The name of the parameter that this option gives a value to; None if it is no option that takes one."""
        function = self.verbs[verb] if verb is not None else next(iter(self.verbs.values()))
        for action in _parser_of(function, "")._actions:
            if word in action.option_strings and action.nargs != 0:
                return action.dest
        return None

    def _unknown(self, prog: str, word: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(word, self.verbs, 1)
        hint = f"did you mean `{prog} {close[0]}`?" if close else f"there is: {', '.join(self.verbs)}"
        return f"there is no {prog.removeprefix('unstuck ')} {told(word)}; {hint}"


def _run(function: Callable[..., Any], prog: str, words: Sequence[str]) -> int:
    parser = _parser_of(function, prog)
    try:
        # Intermixed: options may stand between the arguments, where people put them.
        found = _unshielded(vars(parser.parse_intermixed_args(_shielded(words))))
    except SystemExit:  # argparse has printed the help
        return 0
    for name, shared in get_type_hints(function).items():
        if is_dataclass(shared) and isinstance(shared, type):
            found[name] = shared(**{field.name: found.pop(field.name) for field in fields(shared)})
    answer = function(**found)
    return answer if isinstance(answer, int) else 0


#: In front of words that stand behind `--`: argparse forgets what that means when options and arguments are mixed. No
#: word of a command line can hold it.
_SHIELD = "\0"


def _shielded(words: Sequence[str]) -> list[str]:
    """What stands behind the first `--` is no option, whatever it begins with."""
    given = list(words)
    if "--" not in given:
        return given
    end = given.index("--")
    return given[:end] + [_SHIELD + word for word in given[end + 1 :]]


def _unshielded(found: dict[str, Any]) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(one) for one in value]
        return value.removeprefix(_SHIELD) if isinstance(value, str) else value

    return {name: plain(value) for name, value in found.items()}


#: argparse repeats whole arguments, and a shell may hand over a file's worth of them.
_LONGEST_COMPLAINT = 1000


class Parser(argparse.ArgumentParser):
    """Says what is wrong by raising; `main` prints it and chooses the exit code."""

    def format_help(self) -> str:
        self._fit()
        return super().format_help()

    def format_usage(self) -> str:
        self._fit()
        return super().format_usage()

    def _fit(self) -> None:
        """To the terminal's width, as argparse does by itself."""
        from shutil import get_terminal_size

        self.formatter_class = partial(_Formatter, width=get_terminal_size().columns - 2)

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            message += "; a value that begins with a dash is tied to it: --option=-5"
        raise Usage(told(message.replace(_SHIELD, ""), _LONGEST_COMPLAINT), self.prog, self.format_usage())


class _Formatter(argparse.HelpFormatter):
    """One short line of usage, and options as `--name, -n VALUE`."""

    def __init__(self, prog: str, width: int = 0) -> None:
        # argparse makes one for every option that it is told, and would load `shutil` for the width of the terminal.
        super().__init__(prog, max_help_position=34, width=width)

    def start_section(self, heading: str | None) -> None:
        super().start_section({"positional arguments": "Arguments", "options": "Options"}.get(heading or "", heading))

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, "Usage: ")

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {action.metavar}"


def _parser_of(function: Callable[..., Any], prog: str) -> Parser:
    parser = Parser(
        prog=prog, description=_doc(function), allow_abbrev=False, formatter_class=_Formatter, add_help=False
    )
    usage = [prog, "[OPTIONS]"]
    for parameter, annotated in _parameters(function):
        hint, how = get_args(annotated)[:2]
        kind, is_list = _kind(hint)
        if isinstance(how, Argument):
            usage.append(_add_argument(parser, parameter, how, is_list))
        else:
            _add_option(parser, parameter, how, kind, is_list)
    parser.add_argument("--help", "-h", action="help", help="this text")
    parser.usage = " ".join(usage)
    return parser


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any]]:
    """With the fields of shared options in the place of the parameter that takes them."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            yield from _parameters(hint)
        else:
            yield parameter, hint


def _doc(function: Callable[..., Any]) -> str:
    return " ".join((function.__doc__ or "").split())


def _kind(hint: Any) -> tuple[Any, bool]:
    """`list[str] | None` -> (str, True)."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    return (get_args(hint)[0], True) if get_origin(hint) is list else (hint, False)


def _add_argument(parser: argparse.ArgumentParser, parameter: inspect.Parameter, how: Argument, is_list: bool) -> str:
    """Answers how it stands in the line of usage."""
    is_needed = parameter.default is inspect.Parameter.empty
    many = ("+" if is_needed else "*") if is_list else (None if is_needed else "?")
    default = None if is_needed else parameter.default
    parser.add_argument(parameter.name, metavar=how.metavar, help=how.help, nargs=many, default=default)
    shown = f"{how.metavar}…" if is_list else how.metavar
    return shown if is_needed else f"[{shown}]"


def _add_option(
    parser: argparse.ArgumentParser, parameter: inspect.Parameter, how: Option, kind: Any, is_list: bool
) -> None:
    help_text = argparse.SUPPRESS if how.help is None else how.help.replace("%", "%%")
    common: dict[str, Any] = {"dest": parameter.name, "help": help_text, "default": parameter.default}
    if kind is bool:
        parser.add_argument(*how.names, action="store_true", **common)
        if how.off:
            parser.add_argument(how.off, action="store_false", **common | {"help": f"not {how.names[0]}"})
        return
    shown = how.metavar or ("N" if kind is int else "TEXT")
    if parameter.default not in (None, inspect.Parameter.empty):
        common["help"] = f"{help_text} (default: {parameter.default})"
    action = "append" if is_list else "store"
    parser.add_argument(*how.names, metavar=shown, type=_reader(how, kind), action=action, **common)


def _reader(how: Option, kind: Any) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = (how.read or _READERS.get(kind, kind))(text)
        except InvalidInput as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        except ValueError:
            raise argparse.ArgumentTypeError(f"{quoted(text)} is not a {_SPOKEN.get(kind, 'value')}") from None
        if (how.least is not None and value < how.least) or (how.most is not None and value > how.most):
            raise argparse.ArgumentTypeError(
                f"{told(value)} is not between {how.least} and {how.most or 'any number'}"
            )
        return value

    return read


def whole_number(text: str) -> int:
    """As people write it: `int` takes 1_000 and the digits of every script."""
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        raise ValueError
    return int(text)


_READERS: dict[Any, Callable[[str], Any]] = {int: whole_number}
_SPOKEN = {int: "whole number", float: "number"}

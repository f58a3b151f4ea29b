"""Writes Python's face of the table of operations: `python docs/draw_faces.py` after changing an operation.

A class per noun, a method per operation with its own signature, and its twin for coroutines; and once more for
AsyncClient, whose methods are coroutines all. Written out rather than made at run time, so that editors and type
checkers see what they see elsewhere. A test compares the two.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
import subprocess
import sys
import typing
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

from unstuck.operations import kinds
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.table import Operation

ROOM = Path(__file__).parents[1] / "src" / "unstuck" / "app"

ORIGIN = """
Written by `docs/draw_faces.py` from the table of operations; a test compares the two. Change operations/ instead.
"""
NOUNS = f'''\
"""The nouns of an App: `app.queues.pause("io", seconds=600)`, in coroutines `await app.queues.apause(…)`.
{ORIGIN}"""

from __future__ import annotations
'''
FACE = f'''\
"""What an App offers besides its workflows: a property for each noun.

A noun is imported when it is first asked for: every executor imports the App, and most ask for none.
{ORIGIN}"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unstuck.app.engine import Engine
    from unstuck.app.nouns import {{names}}
'''

ASYNC_NOUNS = f'''\
"""The nouns of an AsyncClient: `await client.queues.pause("io", seconds=600)`.
{ORIGIN}"""

from __future__ import annotations
'''
ASYNC_FACE = f'''\
"""What an AsyncClient offers: a property for each noun.
{ORIGIN}"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unstuck.app.async_nouns import {{names}}
    from unstuck.app.remote import AsyncEngine
'''

_WIDTH = 118 - 8
_OWN = {"tenant": "tenant: str | None = None", "by": "by: str | None = None"}


def draw() -> dict[Path, str]:
    """All four modules, whole."""
    found = sorted(OPERATIONS.values(), key=lambda operation: operation.noun)
    nouns = {noun: [*each] for noun, each in groupby(found, lambda operation: operation.noun)}
    modules: dict[str, str] = {}
    for before, is_async, head, face in (("", False, NOUNS, FACE), ("async_", True, ASYNC_NOUNS, ASYNC_FACE)):
        classes = "\n\n".join(_class(noun, operations, is_async) for noun, operations in nouns.items())
        names = ", ".join(_camel(noun, is_async) for noun in nouns)
        modules[f"{before}nouns.py"] = "\n".join([head, _imports(classes, nouns, is_async), "", classes])
        modules[f"{before}face.py"] = face.format(names=names) + "\n\n" + _face([*nouns], is_async)
    return {ROOM / name: _formatted(text, ROOM / name) for name, text in modules.items()}


def _class(noun: str, operations: list[Operation[Any, Any]], is_async: bool) -> str:
    about = _about(operations[0]).replace("\n        ", "\n    ")
    base = "AsyncNoun" if is_async else "Noun"
    lines = [f"class {_camel(noun, is_async)}({base}):", f'    """{about}"""', "", "    __slots__ = ()", ""]
    for operation in operations:
        methods = [_coroutine(operation)] if is_async else [_method(operation), _twin(operation)]
        for method in methods:
            lines += [*method, ""]
    return "\n".join(lines)


def _coroutine(operation: Operation[Any, Any]) -> list[str]:
    """Its twin, by its own name and with its own words."""
    first, *rest = _twin(operation)
    return [first.replace(f"def {operation.twin}(", f"def {operation.verb}(", 1), _docs(operation), *rest[1:]]


def _method(operation: Operation[Any, Any]) -> list[str]:
    parameters, returns = _signature(operation)
    ask = "follow" if operation.entry.effect == "stream" else "wait" if operation.entry.waits else "ask"
    return [
        f"    def {operation.verb}({parameters}) -> {returns.replace('Source[', 'Stream[')}:",
        _docs(operation),
        f"        return self._engine.{ask}({_call(operation)})",
    ]


def _docs(operation: Operation[Any, Any]) -> str:
    text = "\n        ".join(wrap(inspect.cleandoc(operation.__doc__ or ""), _WIDTH - 6))
    return f'        """{text}"""'


def _twin(operation: Operation[Any, Any]) -> list[str]:
    parameters, returns = _signature(operation)
    if operation.entry.effect == "stream":
        return [
            f"    def {operation.twin}({parameters}) -> {returns.replace('Source[', 'AsyncStream[')}:",
            f'        """`{operation.verb}` for coroutines."""',
            f"        return self._engine.afollow({_call(operation)})",
        ]
    return [
        f"    async def {operation.twin}({parameters}) -> {returns}:",
        f'        """`{operation.verb}` for coroutines."""',
        f"        return await self._engine.{'await_' if operation.entry.waits else 'aask'}({_call(operation)})",
    ]


def _signature(operation: Operation[Any, Any]) -> tuple[str, str]:
    signature = inspect.signature(operation.function)
    shown, starred = ["self"], False
    for parameter in [*signature.parameters.values()][1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown, starred = [*shown, "*"], True
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        shown.append(f"{parameter.name}: {_annotation(parameter.annotation)}{default}")
    own = _own(operation)
    if own and not starred:
        shown.append("*")
    return ", ".join([*shown, *(_OWN[name] for name in own)]), _annotation(signature.return_annotation)


def _own(operation: Operation[Any, Any]) -> list[str]:
    """What every operation of its kind takes besides: whose, and who asks."""
    tenant = [] if operation.entry.whose == "platform" else ["tenant"]
    return [*tenant, "by"] if operation.entry.effect == "change" else tenant


def _call(operation: Operation[Any, Any]) -> str:
    parameters = [*inspect.signature(operation.function).parameters.values()][1:]
    words = [f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in parameters]
    own = _own(operation)
    whose, who = ("tenant" if "tenant" in own else "None"), ("by" if "by" in own else "None")
    function = f"{operation.noun}.{operation.function.__name__}"
    is_plain = operation.entry.effect != "stream" and not operation.entry.waits
    asked = [function, whose, who] if is_plain else [function, whose]
    return ", ".join([*asked, *words])


def _annotation(text: str) -> str:
    return re.sub(r"(?<![\w.])list(?=\[)", "builtins.list", text)


def _default(value: Any) -> str:
    return "UNSAID" if value is kinds.UNSAID else repr(value)


def _imports(text: str, nouns: dict[str, list[Operation[Any, Any]]], is_async: bool) -> str:
    """Every name that the annotations use comes from where it is defined."""
    base = "AsyncNoun" if is_async else "Noun"
    lines = {f"from unstuck.app.noun import {base}", *(f"from unstuck.operations import {noun}" for noun in nouns)}
    known = {
        word: value
        for operations in nouns.values()
        for word, value in vars(sys.modules[operations[0].function.__module__]).items()
    }
    used = set(re.findall(r"\b[A-Z]\w+|\bdatetime\b", text)) & known.keys()
    lines |= {f"from {_home(word, known[word])} import {word}" for word in used}
    lines |= {
        f"from unstuck.observe.stream import {word}" for word in ("AsyncStream", "Stream") if f" {word}[" in text
    }
    if "builtins." in text:
        lines.add("import builtins")
    return "\n".join(sorted(lines))


def _home(word: str, value: Any) -> str:
    for module in (collections.abc, typing):
        if hasattr(module, word):
            return module.__name__
    if hasattr(kinds, word):
        return "unstuck.operations.kinds"
    module = getattr(value, "__module__", None)
    return module if module and module not in ("typing", "types", "builtins") else _alias_home(word)


def _alias_home(word: str) -> str:
    """An alias has no module of its own: it stands in the one that our rooms take it from."""
    for name in ("unstuck.store.port", "unstuck.observe.lookup", "unstuck.model.job", "collections.abc", "typing"):
        if hasattr(sys.modules.get(name), word):
            return name
    raise LookupError(f"nobody knows where {word} is from: put it into operations/kinds.py")


def _face(nouns: list[str], is_async: bool) -> str:
    before, module = ("Async", "async_nouns") if is_async else ("", "nouns")
    lines = [f"class {before}Face:", '    """A property for each noun."""', "", f"    _engine: {before}Engine", ""]
    for noun in nouns:
        about = _about(OPERATIONS[next(name for name in OPERATIONS if name.startswith(f"{noun}."))])
        lines += [
            "    @property",
            f"    def {noun}(self) -> {_camel(noun, is_async)}:",
            f'        """{about}"""',
            f"        from unstuck.app.{module} import {_camel(noun, is_async)}",
            "",
            f"        return {_camel(noun, is_async)}(self._engine)",
            "",
        ]
    return "\n".join(lines)


def _about(operation: Operation[Any, Any]) -> str:
    module = sys.modules[operation.function.__module__]
    first = (module.__doc__ or "").strip().split("\n\n")[0]
    what = first.partition(": ")[2] or first
    return "\n        ".join(wrap(what[0].upper() + what[1:], _WIDTH - 6))


def _camel(noun: str, is_async: bool) -> str:
    return ("Async" if is_async else "") + "".join(part.capitalize() for part in noun.split("_")) + "Noun"


def _formatted(text: str, file: Path) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    for command in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        name = ["--stdin-filename", str(file), "-"]
        text = subprocess.run([ruff, *command, *name], input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    for file, text in draw().items():
        file.write_text(text)

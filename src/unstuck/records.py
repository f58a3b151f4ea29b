"""`dataclass`, as the standard library's, made at a tenth of its price.

That one compiles six functions for every frozen class, each by itself: 1.5 ms a class, and half of what a command of
ours cost to start was that. Here only `__init__` is compiled, when the first record is made; the other methods are
ordinary functions. Fields, `replace`, `fields` and `asdict` are the standard library's; type checkers are told that
all of it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

T = TypeVar("T")
MISSING = dataclasses.MISSING


def _dataclass(cls: type[T] | None = None, /, **how: bool) -> Any:
    return partial(_made, **how) if cls is None else _made(cls, **how)


if not TYPE_CHECKING:
    dataclass = _dataclass


def _made(cls: Any, *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False) -> Any:
    own = set(vars(cls))
    has_hash = "__hash__" in own and not (cls.__hash__ is None and "__eq__" in own)
    told, cls.__doc__ = cls.__doc__, cls.__doc__ or "-"  # else it is made of a signature, which costs as much again
    made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    made.__doc__ = told
    known = dataclasses.fields(made)
    methods: dict[str, Any] = {"__repr__": _repr}
    if "__init__" not in own:
        methods["__init__"] = _Init(made, known, frozen)
    if eq:
        methods["__eq__"], hash_of = _comparing(*(field.name for field in known if field.compare))
        if not has_hash:
            made.__hash__ = hash_of if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


class _Init:
    """Stands in the place of `__init__` until somebody asks for it: most commands make records of few classes."""

    def __init__(self, cls: Any, known: tuple[dataclasses.Field[Any], ...], frozen: bool) -> None:
        self._of = cls, known, frozen

    def __get__(self, record: Any, owner: Any) -> Callable[..., None]:
        cls = self._of[0]
        cls.__init__ = init = _init_of(*self._of)
        return init if record is None else partial(init, record)


def _init_of(cls: Any, known: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """`def __init__(self, a, b=…, *, c=…)`: one assignment a field, then `__post_init__`."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    takes, keywords, lines = ["self"], ["*"], list[str]()
    for field in known:
        name, value, default = field.name, field.name, f"_default_{field.name}"
        names[default] = field.default
        if field.default_factory is not MISSING:
            names |= {default: _FACTORY, f"_make_{name}": field.default_factory}
            value = f"_make_{name}() if {name} is _factory else {name}"
        is_open = names[default] is not MISSING
        if field.init:
            (keywords if field.kw_only else takes).append(f"{name}={default}" if is_open else name)
        elif is_open:
            value = default if field.default is not MISSING else f"_make_{name}()"
        else:
            continue  # `__post_init__` gives it
        lines.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    asked = takes + keywords if len(keywords) > 1 else takes
    exec(f"def __init__({', '.join(asked)}):\n" + "\n".join(lines or [" pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in known if field.init} | {"return": None}
    return init


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


#: Stands in a signature for what its factory makes.
_FACTORY = _Factory()


def _nothing(record: object) -> tuple[()]:
    return ()


@recursive_repr()
def _repr(self: Any) -> str:
    told = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({told})"


def _comparing(*names: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any], int]]:
    """`__eq__` and `__hash__` by these fields."""
    values = attrgetter(*names) if names else _nothing

    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __eq__, __hash__


def _refuse_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)

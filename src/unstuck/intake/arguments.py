"""How arguments and results travel: bound and checked by the handler's own signature, plain JSON in between.

A call is bound where it is made, so a wrong argument fails in its caller and not in a worker at night. Annotated
parameters may be anything that msgspec knows (dataclasses, TypedDict, enums, datetimes, UUID, Decimal, Struct …),
a path, or a class with `model_validate` and `model_dump`; they come back as that type in the handler. Parameters
without an annotation, or with Any, take plain JSON values only.
"""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID  # noqa: TID251  a type to recognise; nothing is rolled here

import msgspec

from unstuck.intake.formats import describe
from unstuck.intake.unpacking import Unpacking, make_of, read
from unstuck.intake.writing import is_sure, may_hold_floats, written
from unstuck.model.errors import InvalidArguments, InvalidInput, InvalidResult, NotStorable
from unstuck.model.payload import encode, is_plain

if TYPE_CHECKING:
    from unstuck.executor.context import AttemptContext

#: A caller in Python must pass these as themselves: a datetime is no text there, though it travels as text.
_NATIVE = (bytes, bytearray, datetime, date, time, timedelta, UUID, Decimal)
_ANYTHING = (Any, object, inspect.Parameter.empty)
_LARGEST_RESULT = 8 << 20
_NO_ARGUMENTS = '{"args":[],"kwargs":{}}'
_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

Convert = Callable[[Any, Any], Any]
#: How the value of one parameter is made ready for its way.
Way = Callable[[Any], Any]


class Unresolved(InvalidInput):
    """An annotation names something that does not exist (yet): tried again when all code is imported."""


def context_of(
    function: Callable[..., Any], local_names: Mapping[str, Any] | None = None
) -> type[AttemptContext] | None:
    """Context or AsyncContext, if the first parameter is annotated with one, as the class or as text."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or first.kind in (*_SEVERAL, inspect.Parameter.KEYWORD_ONLY):
        return None
    return _context_named(first.annotation, function, local_names)


def _context_named(
    annotation: Any, function: Callable[..., Any], local_names: Mapping[str, Any] | None
) -> type[AttemptContext] | None:
    kinds = _contexts()
    while isinstance(annotation, str):  # quoted under `from __future__ import annotations`, it is text twice
        try:
            annotation = eval(annotation, _globals_of(function), dict(local_names or {}))
        except Exception:
            # Imported for the type checker only: the name is all there is to go by.
            return kinds.get(annotation.strip("'\" ").removeprefix("unstuck."))
    return next((kind for kind in kinds.values() if annotation is kind), None)


def _contexts() -> dict[str, type[AttemptContext]]:
    from unstuck.executor.context import AsyncContext, Context

    return {"Context": Context, "AsyncContext": AsyncContext}


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    return getattr(inspect.unwrap(function), "__globals__", {})


class Binding:
    """Where each argument of a call goes, known once instead of at each call: as `Signature.bind` would place them,
    but for calls that do not fit. Those it leaves to the signature, which has the words for them."""

    def __init__(self, parameters: Sequence[inspect.Parameter]) -> None:
        kinds = {p.kind for p in parameters}
        named = [p for p in parameters if p.kind not in _SEVERAL]
        self._places = [p.name for p in named if p.kind is not p.KEYWORD_ONLY]
        self._names = [p.name for p in named]
        self._required = {p.name for p in named if p.default is p.empty}
        # Seldom, and with rules of their own.
        self._is_plain = not kinds & {*_SEVERAL, inspect.Parameter.POSITIONAL_ONLY}

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any], ways: Mapping[str, Way]) -> dict[str, Any] | None:
        """f(1) and f(x=1) are the same call: what can have a place has it, the rest follows in the signature's order.
        None: it does not fit, or only the signature can tell."""
        given = len(args)
        if not self._is_plain or given > len(self._places):
            return None
        placed = [ways[name](value) for name, value in zip(self._places, args, strict=False)]
        left = len(kwargs)
        rest: dict[str, Any] = {}
        for number, name in enumerate(self._names[given:], given):
            if name in kwargs:
                left -= 1
                value = ways[name](kwargs[name])
                if number == len(placed) < len(self._places):
                    placed.append(value)
                else:
                    rest[name] = value
            elif name in self._required:
                return None
        return {"args": placed, "kwargs": rest} if not left else None


class Arguments:
    """The signature of one handler, without its Context."""

    def __init__(
        self, workflow: str, function: Callable[..., Any], local_names: Mapping[str, Any] | None = None
    ) -> None:
        self.workflow = workflow
        hints = _hints(workflow, function, local_names)
        parameters = list(inspect.signature(function).parameters.values())
        if context_of(function, local_names) is not None:
            del parameters[0]
        self.returns: Any = hints.pop("return", inspect.Parameter.empty)
        self._types = {p.name: hints.get(p.name, p.empty) for p in parameters}
        self._signature = inspect.Signature(parameters)
        self._needs_none = all(p.default is not p.empty or p.kind in _SEVERAL for p in parameters)
        made_of = {name: self._made_of(name, kind) for name, kind in self._types.items()}
        self._has_floats = any(kind in _ANYTHING or may_hold_floats(made_of[n]) for n, kind in self._types.items())
        self._binding = Binding(parameters)
        makes = {n: make_of(kind, _from_wire, is_free=kind in _ANYTHING) for n, kind in self._types.items()}
        self._unpacking = Unpacking(parameters, makes)
        self._where = f"the arguments of {workflow}"
        self._ways: dict[Convert, dict[str, Way]] = {
            convert: {name: _way(kind, convert, is_sure(made_of[name])) for name, kind in self._types.items()}
            for convert in (_to_wire, _recheck_wire)
        }

    def pack_result(self, value: Any) -> str:
        """A result as JSON text; InvalidResult if it could not be read as the type that the signature declares. A
        type that msgspec does not know, like a Protocol, says nothing that could be checked."""
        if type(value) is self.returns or not self._declares_result:
            return encode_result(value)
        plain = None if value is None else _flat_result(value)
        try:
            _from_wire(plain, self.returns)
        except msgspec.ValidationError as error:
            raise InvalidResult(self.workflow, _first_line(error)) from None
        return "null" if value is None else encode(plain, "the result", _LARGEST_RESULT)

    @cached_property
    def _declares_result(self) -> bool:
        if self.returns in _ANYTHING:
            return False
        try:
            self._made_of("return", self.returns)
        except InvalidInput:
            return False
        return True

    def pack(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The payload of a call made in Python; InvalidArguments names the parameter that does not fit."""
        return self._pack(args, kwargs, _to_wire)

    def pack_json(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The payload of a call whose arguments came as JSON: a datetime may be given as text."""
        return self._pack(args, kwargs, _recheck_wire)

    def unpack(self, payload: str) -> tuple[list[Any], dict[str, Any]]:
        """What the handler is called with."""
        if payload == _NO_ARGUMENTS and self._needs_none:
            return [], {}
        call = read(payload)
        args, kwargs = call.get("args", []), call.get("kwargs", {})
        try:
            made = self._unpacking(args, kwargs)
        except Exception:  # validators and constructors of the user's own types raise what they like
            made = None
        if made is not None:
            return made
        bound = self._bind(args, kwargs)
        self._convert(bound, _from_wire)
        return list(bound.args), bound.kwargs

    def schema(self) -> dict[str, Any]:
        """JSON schema of the parameters, for doors that do not have the code."""
        typed = {name: kind for name, kind in self._types.items() if kind not in _ANYTHING}
        schemas, definitions = describe(list(typed.values()), _schema_of)
        described: dict[str, dict[str, Any]] = {name: {} for name in self._types} | dict(
            zip(typed, schemas, strict=True)
        )
        return _object_schema(self._signature, described, definitions)

    def _pack(self, args: Sequence[Any], kwargs: Mapping[str, Any], convert: Convert) -> str:
        """What fits is bound by what was prepared, and written in one go. What does not, the signature itself binds,
        or says why not."""
        try:
            call = self._binding.call(args, kwargs, self._ways[convert])
            text = None if call is None else written(call, has_floats=self._has_floats)
        except Exception:  # validators and constructors of the user's own types raise what they like
            text = None
        if text is not None:
            return text
        bound = self._bind(args, kwargs)
        self._convert(bound, convert)
        return encode({"args": list(bound.args), "kwargs": bound.kwargs}, self._where)

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArguments(self.workflow, str(error)) from None

    def _convert(self, bound: inspect.BoundArguments, convert: Convert) -> None:
        for name, value in bound.arguments.items():
            kind = self._types[name]
            if kind in _ANYTHING:
                continue
            try:
                bound.arguments[name] = _each(self._signature.parameters[name].kind, value, kind, convert)
            except Exception as error:  # validators and constructors of the user's own types raise what they like
                raise InvalidArguments(self.workflow, f"{name}: {_first_line(error)}") from None

    def _made_of(self, name: str, kind: Any) -> list[msgspec.inspect.Type]:
        """The types that a parameter's type is made of, all of which can travel."""
        where = f"workflow {self.workflow}, parameter {name}"
        if kind in _contexts().values():
            raise InvalidInput(f"{where}: {kind.__name__} goes first, or comes from unstuck.current()")
        if kind in _ANYTHING:
            return []
        try:
            parts = _parts(msgspec.inspect.type_info(kind))
            for part in parts:
                _check_custom(part, where)
        except TypeError as error:
            raise InvalidInput(f"{where}: {_first_line(error)}") from None
        return parts


def encode_result(value: Any) -> str:
    """A result as JSON text, of whatever type it is."""
    return "null" if value is None else encode(_flat_result(value), "the result", _LARGEST_RESULT)


def _flat_result(value: Any) -> Any:
    try:
        return _plain(value)
    except Exception as error:
        raise NotStorable("the result", _first_line(error)) from None


#: In place of a return type that nobody knows.
ANY_RESULT: Any = inspect.Parameter.empty


def typed_result(value: Any, returns: Any = ANY_RESULT) -> Any:
    """A result as JSON has it, as the annotated return type; or exactly what was stored if it is something else."""
    if returns in _ANYTHING:
        return value
    try:
        return _from_wire(value, returns)
    except Exception:
        return value


def _hints(workflow: str, function: Callable[..., Any], local_names: Mapping[str, Any] | None) -> dict[str, Any]:
    """Resolved annotations. A context may be known to the type checker alone: it never travels."""
    own = {name: kind for name, kind in _contexts().items() if name not in _globals_of(function)}
    try:
        return typing.get_type_hints(function, localns={**own, **(local_names or {})}, include_extras=True)
    except NameError as error:
        raise Unresolved(
            f"workflow {workflow}: {error}; annotations must be importable at run time, not only under TYPE_CHECKING"
        ) from None
    except TypeError as error:
        raise InvalidInput(f"workflow {workflow}: its annotations cannot be read: {error}") from None


def _each(kind: Any, value: Any, annotation: Any, convert: Convert) -> Any:
    match kind:
        case inspect.Parameter.VAR_POSITIONAL:
            return tuple(convert(item, annotation) for item in value)
        case inspect.Parameter.VAR_KEYWORD:
            return {key: convert(item, annotation) for key, item in value.items()}
        case _:
            return convert(value, annotation)


def _way(kind: Any, convert: Convert, is_sure: bool) -> Way:
    """Values of plain types need no more than a look. One of a type that `is_sure` is checked and written as it is;
    any other is made of JSON's own types before."""
    if kind in _ANYTHING:
        return _as_it_is
    if kind in (str, int, bool, float):
        return lambda value: value if type(value) is kind else convert(value, kind)
    if not is_sure:
        return lambda value: convert(value, kind)
    check = _CHECKS[convert]
    return lambda value: check(value, kind)


def _as_it_is(value: Any) -> Any:
    if not is_plain(value):
        raise NotStorable("an argument", "only a closer look can tell")
    return value


def _to_wire(value: Any, kind: Any) -> Any:
    return _plain(_checked(value, kind))


def _checked(value: Any, kind: Any) -> Any:
    """With dates, UUIDs and bytes as themselves, so that bytes never pass for text."""
    native = msgspec.to_builtins(value, builtin_types=_NATIVE, enc_hook=_flatten)
    return msgspec.convert(native, kind, builtin_types=_NATIVE, dec_hook=_build)


def _recheck_wire(value: Any, kind: Any) -> Any:
    return _plain(_from_wire(value, kind))


def _from_wire(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, str_keys=True, dec_hook=_build)


#: The first half of each: what is checked, and not yet flat.
_CHECKS: dict[Convert, Convert] = {_to_wire: _checked, _recheck_wire: _from_wire}


def _plain(value: Any) -> Any:
    built = msgspec.to_builtins(value, enc_hook=_flatten)
    return built if is_plain(built) else _with_text_keys(built)


def _with_text_keys(value: Any) -> Any:
    """1 becomes "1", as JSON wants it; two keys that become the same would lose a value."""
    if isinstance(value, list | tuple):
        return [_with_text_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {(key if isinstance(key, str) else _key_text(key)): _with_text_keys(item) for key, item in value.items()}
    if len(named) < len(value):
        texts = [key if isinstance(key, str) else _key_text(key) for key in value]
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"two of its keys are the same as text: {twice!r}")
    return named


def _key_text(key: Any) -> str:
    (text,) = msgspec.to_builtins({key: None}, str_keys=True)
    return str(text)


def _flatten(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"a value of type {type(value).__name__} has no place in JSON")


def _build(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    if callable(validate := getattr(kind, "model_validate", None)):
        return validate(value)
    raise TypeError(f"expected {getattr(kind, '__name__', kind)}, got {type(value).__name__}")


def _schema_of(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return {"type": "string"}
    if callable(describe := getattr(kind, "model_json_schema", None)):
        described: dict[str, Any] = describe()
        # Its own $defs would be looked for in ours; the class itself checks the rest when the job is unpacked.
        return {"type": "object", "title": described.get("title", kind.__name__)}
    return {}


def _check_custom(part: msgspec.inspect.Type, where: str) -> None:
    if not isinstance(part, msgspec.inspect.CustomType):
        return
    kind = part.cls
    if not (issubclass(kind, PurePath) or hasattr(kind, "model_validate")):
        raise InvalidInput(
            f"{where}: a {kind.__name__} cannot travel as JSON; use a dataclass, a TypedDict or plain values"
        )


def _parts(info: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """A type and the types it is made of; recursive classes end at themselves."""
    found: list[msgspec.inspect.Type] = []
    waiting = [info]
    while waiting:
        part = waiting.pop()
        if not any(part is known for known in found):
            found.append(part)
            waiting += _inner(part)
    return found


def _inner(part: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    single = [getattr(part, name, None) for name in ("type", "item_type", "key_type", "value_type")]
    several = [inner for name in ("types", "item_types", "fields") for inner in getattr(part, name, ())]
    made_of = [inner.type if isinstance(inner, msgspec.inspect.Field) else inner for inner in (*single, *several)]
    return [inner for inner in made_of if isinstance(inner, msgspec.inspect.Type)]


def _object_schema(
    signature: inspect.Signature, described: dict[str, dict[str, Any]], definitions: dict[str, Any]
) -> dict[str, Any]:
    named = {n: p for n, p in signature.parameters.items() if p.kind not in _SEVERAL}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: described[name] | _default_of(p) for name, p in named.items()},
        "required": [name for name, p in named.items() if p.default is p.empty],
        "additionalProperties": False,
        "x-positional": [name for name, p in named.items() if p.kind is not p.KEYWORD_ONLY],
        "x-positional-only": [name for name, p in named.items() if p.kind is p.POSITIONAL_ONLY],
    }
    for name, p in signature.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            schema["x-more"] = described[name]
        if p.kind is p.VAR_KEYWORD:
            schema["additionalProperties"] = described[name] or True
    return schema | ({"$defs": definitions} if definitions else {})


def _default_of(parameter: inspect.Parameter) -> dict[str, Any]:
    if parameter.default is parameter.empty:
        return {}
    with contextlib.suppress(Exception):
        plain = _plain(parameter.default)
        encode(plain, "a default")
        return {"default": plain}
    return {}


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__

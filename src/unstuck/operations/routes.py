"""Routes: how HTTP asks each operation. The server, its OpenAPI document and the Client are made from them.

A route follows from an operation's name, effect and signature; where it does not, its entry says `route="PUT
/settings/{name}"`. The rules:

- `list` and a `get` without a thing: GET /noun; `get`: GET /noun/{thing}; other reads: GET /noun/{thing}/verb, or GET
  /noun/verb where there is no thing. The thing is the first argument by place that has no default.
- What makes something (add, create, enqueue, start): POST /noun. What takes it away (remove, revoke): DELETE
  /noun/{thing}. `set`: PUT /noun/{thing}. Other changes: POST /noun/{thing}/verb, or POST /noun/verb.
- Arguments that are not in the path: in the query of reads and of DELETE, lists repeated (`state=QUEUED&state=DEAD`),
  what is neither text nor number as JSON; of other changes in a JSON body. `tenant` stands in the query, in a body it
  is understood too; `by` goes with the arguments of a change.
- What was not said is left out. Instants are written as RFC 3339 says, durations as numbers or "5m".

Streams have no route.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import json
import types
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from unstuck.model.errors import InvalidInput, UnstuckError, WrongArguments, quoted
from unstuck.operations.kinds import UNSAID, Unsaid
from unstuck.operations.table import Operation
from unstuck.records import dataclass

#: What every path begins with.
PREFIX = "/api/v1"

_MAKE = frozenset({"add", "create", "enqueue", "start"})
_TAKE_AWAY = frozenset({"remove", "revoke"})


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """How one operation is asked over HTTP."""

    operation: Operation[Any, Any]
    method: str
    #: "/jobs/{job}/cancel", behind the prefix.
    path: str
    #: The arguments in the path, in its order, and what they are.
    names: Mapping[str, Any]
    #: What the query may hold, and the JSON body; None: there is none.
    query: type[Struct]
    body: type[Struct] | None
    #: What the answer's JSON is decoded as.
    answer: Any
    status: int
    errors: tuple[type[UnstuckError], ...]

    @property
    def name(self) -> str:
        return self.operation.name


class HttpRequest(Struct, frozen=True):
    """What is sent. `path` is quoted and has the prefix; in the query a name may come several times."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    body: dict[str, Any] | None


@functools.cache
def routes() -> dict[str, HttpRoute]:
    """All there are, by the name of their operation."""
    from unstuck.operations import nouns

    return {
        name: route_of(operation)
        for name, operation in nouns.OPERATIONS.items()
        if operation.entry.effect != "stream"
    }


@functools.cache
def route_of(operation: Operation[Any, Any]) -> HttpRoute:
    parameters, hints = _parameters(operation), get_type_hints(operation.function)
    method, path = _method_and_path(operation, parameters)
    names = {name: hints[name] for name in _names_in(path)}
    rest = [_field(parameter, hints[name]) for name, parameter in parameters.items() if name not in names]
    entry = operation.entry
    tenant = [] if entry.whose == "platform" else [_OWN["tenant"]]
    if entry.effect == "change":
        rest = [*rest, _OWN["by"]]
    in_body = method in ("POST", "PUT", "PATCH")
    title = "".join(word.capitalize() for word in f"{operation.noun}_{operation.verb}".split("_"))
    return HttpRoute(
        operation=operation,
        method=method,
        path=path,
        names=names,
        query=_struct(f"{title}Query", tenant if in_body else [*rest, *tenant], in_query=True),
        body=_struct(f"{title}Body", [*rest, *tenant]) if in_body else None,
        answer=hints["return"],
        status=entry.status,
        errors=entry.errors,
    )


def request(route: HttpRoute, args: Sequence[Any], kwargs: Mapping[str, Any]) -> HttpRequest:
    """What a call of the operation sends; `kwargs` may hold `tenant` and `by`."""
    said = _bound(route, args, kwargs)
    query: list[tuple[str, str]] = []
    body: dict[str, Any] | None = None if route.body is None else {}
    path = PREFIX + route.path
    for name, value in said.items():
        if name in route.names:
            path = path.replace("{" + name + "}", _in_path(value))
        elif name in route.query.__struct_fields__:
            query += [(name, text) for text in _in_query(value, kinds_of(route.query)[name])]
        elif route.body is not None and body is not None:
            body[name] = _plain(value, kinds_of(route.body)[name])
    return HttpRequest(route.method, path, tuple(query), body)


def arguments(
    route: HttpRoute,
    path: Mapping[str, str],
    query: Iterable[tuple[str, str]],
    body: Any = None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a request asks: the arguments by place and by name of the call, with `tenant` and `by` if they were said.
    `path`: the parts of the raw path, still quoted."""
    problems: list[tuple[str, str, str]] = []
    found = _from_path(route, path, problems)
    found |= _from_query(route, query, problems)
    if route.body is not None:
        for name, value in _converted(route.body, body, "body", problems).items():
            if name == "tenant" and found.get("tenant") not in (None, value):
                problems.append(("body", "/tenant", f"the query names another tenant, {quoted(found['tenant'])}"))
            found[name] = value
    if problems:
        raise WrongArguments(problems)
    own: dict[str, Any] = {name: found.pop(name) for name in ("tenant", "by") if name in found}
    by_place = [
        name
        for name, parameter in _parameters(route.operation).items()
        if parameter.kind is not parameter.KEYWORD_ONLY and name in found
    ]
    return tuple(found.pop(name) for name in by_place), {**found, **own}


def check_query(route: HttpRoute, query: Iterable[tuple[str, str]]) -> None:
    """WrongArguments, of the query alone: where one stands for many bodies."""
    problems: list[tuple[str, str, str]] = []
    _from_query(route, query, problems)
    if problems:
        raise WrongArguments(problems)


# --- the rules ----------------------------------------------------------------------------------------------------


def _method_and_path(operation: Operation[Any, Any], parameters: Mapping[str, inspect.Parameter]) -> tuple[str, str]:
    if operation.entry.route is not None:
        method, _, path = operation.entry.route.partition(" ")
        return method, path
    noun, verb = _dashed(operation.noun), operation.verb
    by_place = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY and p.default is p.empty]
    thing = f"/{noun}/{{{by_place[0].name}}}" if by_place else f"/{noun}"
    if operation.entry.effect == "read":
        return "GET", thing if verb in ("list", "get") else f"{thing}/{_dashed(verb)}"
    if verb in _MAKE:
        return "POST", f"/{noun}"
    if verb in _TAKE_AWAY:
        return "DELETE", thing
    return ("PUT", thing) if verb == "set" else ("POST", f"{thing}/{_dashed(verb)}")


def _dashed(word: str) -> str:
    return word.replace("_", "-")


def _names_in(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


@functools.cache
def _parameters(operation: Operation[Any, Any]) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(operation.function).parameters)
    found.pop("caller")
    return found


def _bound(route: HttpRoute, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """By name, without what is as if nothing had been said."""
    own = {name: kwargs[name] for name in ("tenant", "by") if kwargs.get(name) is not None}
    given = {name: value for name, value in kwargs.items() if name not in ("tenant", "by")}
    said = inspect.signature(route.operation.function).bind(None, *args, **given).arguments
    defaults = {name: p.default for name, p in _parameters(route.operation).items()}
    return {
        **{name: value for name, value in said.items() if name != "caller" and not _is_same(value, defaults[name])},
        **own,
    }


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and value == default)


# --- what arguments are, on the way -------------------------------------------------------------------------------

#: Without its zone it would be nobody's time.
INSTANT = Annotated[datetime, msgspec.Meta(tz=True)]

_Field = tuple[str, Any, Any]

#: Not empty: whoever sends one without its value means somebody, and would get the default.
_SOMEBODY = Annotated[str, msgspec.Meta(min_length=1)]
_OWN: dict[str, _Field] = {name: (name, _SOMEBODY | None, None) for name in ("tenant", "by")}

_NEEDED = object()


def _field(parameter: inspect.Parameter, hint: Any) -> _Field:
    default = _NEEDED if parameter.default is parameter.empty else parameter.default
    if default is UNSAID:
        return parameter.name, _wire(hint) | UnsetType, UNSET
    return parameter.name, _wire(hint), [] if default == () else default


def _struct(name: str, fields: Iterable[_Field], *, in_query: bool = False) -> type[Struct]:
    made = [(name, _repeated(kind) if in_query else kind, default) for name, kind, default in fields]
    return msgspec.defstruct(
        name,
        [(name, kind) if default is _NEEDED else (name, kind, default) for name, kind, default in made],
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
        module=__name__,
    )


def _wire(hint: Any) -> Any:
    """The type as JSON can tell it: any iterable is a list, and text of any kind is text."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        members = [_wire(each) for each in inside if each is not Unsaid]
        if str in members:
            members = [each for each in members if each is str or not _is_text(each)]
        return Union[tuple(dict.fromkeys(members))]  # noqa: UP007 - of as many as there are
    if origin in (collections.abc.Iterable, collections.abc.Collection, collections.abc.Sequence):
        return list[_wire(inside[0])]  # type: ignore[misc]
    if origin is collections.abc.Mapping:
        return dict[_wire(inside[0]), _wire(inside[1])]  # type: ignore[misc]
    return INSTANT if hint is datetime else hint


def _is_text(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, str)


def _repeated(kind: Any) -> Any:
    """In a query one is a list of one."""
    lists = [each for each in get_args(kind) if get_origin(each) is list]
    return lists[0] if lists else kind


@functools.cache
def kinds_of(struct: type[Struct]) -> dict[str, Any]:
    """What each field is."""
    return {field.name: field.type for field in msgspec.structs.fields(struct)}


def is_told_as_json(kind: Any) -> bool:
    """In a query."""
    members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    return any(each is Any or get_origin(each) in (tuple, dict) for each in members)


# --- there --------------------------------------------------------------------------------------------------------


def _in_path(value: Any) -> str:
    try:
        text = quote(str(_plain(value, Any)), safe="")
    except UnicodeEncodeError:
        raise InvalidInput(f"{quoted(value)} is not text that a path can hold") from None
    # Clients and proxies take these for steps in a tree.
    return text.replace(".", "%2E") if text in (".", "..") else text


def _in_query(value: Any, kind: Any) -> list[str]:
    if get_origin(kind) is list:
        return [_text(one) for one in ([value] if isinstance(value, str) else value)]
    return [json.dumps(value) if is_told_as_json(kind) else _text(_plain(value, kind))]


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else json.dumps(value)


def _plain(value: Any, kind: Any) -> Any:
    """As JSON tells it; what an app or an operator chose is left as it is."""
    if kind is Any:
        return value
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


# --- and back -----------------------------------------------------------------------------------------------------


def _from_path(route: HttpRoute, path: Mapping[str, str], problems: list[tuple[str, str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in route.names.items():
        try:
            found[name] = msgspec.convert(unquote(path[name], errors="strict"), kind, strict=False)
        except UnicodeDecodeError:
            problems.append(("path", f"/{name}", "it is not text in UTF-8"))
        except msgspec.ValidationError as problem:
            problems.append(("path", f"/{name}", str(problem)))
    return found


def _from_query(
    route: HttpRoute, query: Iterable[tuple[str, str]], problems: list[tuple[str, str, str]]
) -> dict[str, Any]:
    kinds, said = kinds_of(route.query), dict[str, Any]()
    for name, text in query:
        kind = kinds.get(name, str)
        if get_origin(kind) is list:
            said.setdefault(name, []).append(text)
        elif name in said:
            problems.append(("query", f"/{name}", "it is said more than once"))
        else:
            try:
                said[name] = _read(text, kind)
            except ValueError as problem:
                problems.append(("query", f"/{name}", str(problem)))
                said[name] = None
    told = {pointer for _, pointer, _ in problems}
    more: list[tuple[str, str, str]] = []
    found = _converted(route.query, said, "query", more)
    problems += [problem for problem in more if problem[1] not in told]
    return found


def _read(text: str, kind: Any) -> Any:
    """Text of a query as the value that it tells."""
    if is_told_as_json(kind):
        return json.loads(text)
    if msgspec.inspect.type_info(kind) == msgspec.inspect.StrType():
        return text
    try:
        return msgspec.convert(text, kind, strict=True)
    except msgspec.ValidationError:
        if INSTANT in get_args(kind):
            raise ValueError("it is no instant as RFC 3339 writes it, 2026-01-31T12:00:00Z") from None
        return msgspec.convert(text, kind, strict=False)


def _converted(struct: type[Struct], said: Any, place: str, problems: list[tuple[str, str, str]]) -> dict[str, Any]:
    """What was said and what holds else, by name; every problem is told, not the first alone."""
    if not isinstance(said, dict):
        problems.append((place, "", "it is not an object"))
        return {}
    try:
        whole = msgspec.convert(said, struct)
    except msgspec.ValidationError:
        problems += [(place, pointer, detail) for pointer, detail in _problems(struct, said)]
        return {}
    found = {name: getattr(whole, name) for name in struct.__struct_fields__}
    own = ("tenant", "by")
    return {
        name: value for name, value in found.items() if value is not UNSET and (value is not None or name not in own)
    }


def _problems(struct: type[Struct], said: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    for name, value in said.items():
        pointer = f"/{_escaped(str(name))}"
        if name not in fields:
            yield pointer, f"there is no such argument; there are: {', '.join(fields) or 'none'}"
            continue
        try:
            msgspec.convert(value, fields[name].type)
        except msgspec.ValidationError as problem:
            detail, _, where = str(problem).partition(" - at `$")
            yield pointer + where.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/"), detail
    for name, field in fields.items():
        if field.required and name not in said:
            yield f"/{name}", "it is missing"


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")

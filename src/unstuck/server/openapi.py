"""The OpenAPI document, from the routes: paths, arguments, answers, every error of each."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from unstuck.model import errors
from unstuck.operations.routes import PREFIX, HttpRoute, is_told_as_json, kinds_of, routes
from unstuck.operations.table import INCLUDED, PLATFORM_ADMIN, READER, Role
from unstuck.server import seeds, sessions, sse, submits, tickets
from unstuck.server.live import STREAMED
from unstuck.server.problems import ERRORS, MEDIA_TYPE, REFUSALS
from unstuck.version import __version__

#: What every request may be answered with.
_ALWAYS = ("BadRequest", "Forbidden", "CrossSite", "TooManyRequests", "ServerError", "Overloaded")
_OF_BODIES = ("NotJson", "TooSlow", "TooLarge", "NotAsJson")
_OF_REQUESTS = (
    errors.WrongArguments, errors.InvalidInput, errors.Unauthenticated, errors.NotPermitted,
    errors.TooManyAttempts, errors.StoreError,
)  # fmt: skip
_PROBLEM = {
    "type": "object",
    "description": "What was refused or failed, as RFC 9457 writes it.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "remedy": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "in": {"enum": ["path", "query", "body"]},
                    "pointer": {"type": "string"},
                    "detail": {"type": "string"},
                },
                "required": ["in", "pointer", "detail"],
            },
        },
        "about": {"type": "object"},
    },
    "required": ["type", "title", "status", "detail", "code", "remedy", "request_id"],
}


@functools.cache
def text(role: Role = PLATFORM_ADMIN) -> str:
    """What this role may ask: a platform admin everything. A line for each path and each schema, so that a change is
    seen."""
    whole = document(role)
    rest = {name: told for name, told in whole.items() if name not in ("paths", "components")}
    schemas, schemes = whole["components"]["schemas"], whole["components"]["securitySchemes"]
    components = f'{{"securitySchemes": {_line(schemes)},\n"schemas": {_lines(schemas)}}}'
    return f'{_line(rest)[:-1]},\n"paths": {_lines(whole["paths"])},\n"components": {components}}}\n'


def _lines(told: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{_line(name)}: {_line(told[name])}" for name in sorted(told)) + "\n}"


def _line(told: Any) -> str:
    return json.dumps(told, sort_keys=True)


def document(role: Role = PLATFORM_ADMIN) -> dict[str, Any]:
    known = {(PREFIX + route.path, name): route for name, route in routes().items()}
    known |= {**submits.documented(), **seeds.documented()}
    found = {place: route for place, route in known.items() if route.operation.entry.role in INCLUDED[role]}
    every = list(found.values())
    kinds = [each for route in every for each in (route.answer, route.query, route.body) if each is not None]
    kinds += [sessions.AskerView, tickets.TicketView]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    of = dict(zip(map(_name, kinds), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for (path, name), route in found.items():
        paths.setdefault(path, {})[route.method.lower()] = _operation(name, route, of, components)
    paths[sessions.PATH] = sessions.documented(_problem)
    if READER in INCLUDED[role]:
        paths[tickets.PATH] = tickets.documented(_problem)
    # Queries are told field by field.
    queries = {route.query.__name__ for route in every}
    components = {name: _mended(schema) for name, schema in components.items() if name not in queries}
    return {
        "openapi": "3.1.0",
        "info": {"title": "unstuck", "version": __version__, "description": "Durable jobs that never get stuck."},
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "bearerFormat": "usk_…"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "__Host-unstuck-session"},
            },
        },
        "security": [{"key": []}, {"cookie": []}],
        "tags": [
            {"name": noun} for noun in sorted({*(route.operation.noun for route in every), "session", "ticket"})
        ],
    }


def _name(kind: Any) -> str:
    return repr(kind)


def _operation(name: str, route: HttpRoute, of: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    text = inspect.cleandoc(route.operation.__doc__ or "")
    entry = route.operation.entry
    found: dict[str, Any] = {
        "operationId": name,
        "tags": [route.operation.noun],
        "summary": " ".join(text.split()).partition(". ")[0].rstrip("."),
        "description": f"{text}\n\nNeeds the role {entry.role}.",
        "parameters": [*_in_path(route), *_in_query(route, components)],
        "responses": _responses(route, of),
    }
    if route.body is not None:
        schema = of[_name(route.body)]
        needed = any(field.required for field in msgspec.structs.fields(route.body))
        found["requestBody"] = {"required": needed, "content": {"application/json": {"schema": schema}}}
    return found


def _in_path(route: HttpRoute) -> Iterable[dict[str, Any]]:
    for name, kind in route.names.items():
        yield {"name": name, "in": "path", "required": True, "schema": msgspec.json.schema(kind)}


def _in_query(route: HttpRoute, components: dict[str, Any]) -> Iterable[dict[str, Any]]:
    schema, kinds = components[route.query.__name__], kinds_of(route.query)
    for name, told in schema["properties"].items():
        said = _without_null(_mended(told))
        how = (
            {"content": {"application/json": {"schema": said}}} if is_told_as_json(kinds[name]) else {"schema": said}
        )
        yield {"name": name, "in": "query", "required": name in schema.get("required", ()), **how}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """In a query nothing can be null: it is left out."""
    several = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if not several:
        return schema
    rest = {name: told for name, told in schema.items() if name not in ("anyOf", "default")}
    return {**rest, **several[0]} if len(several) == 1 else {**rest, "anyOf": several}


def _responses(route: HttpRoute, of: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": "done",
        "content": {"application/json": {"schema": of[_name(route.answer)]}},
    }
    if route.name in STREAMED:
        answer["content"][sse.MEDIA_TYPE] = {"schema": {"type": "string"}}
    found: dict[str, Any] = {str(route.status): answer}
    if route.name == "jobs.enqueue" and route.status == 201:
        found["200"] = answer | {"description": "its key led to a job that was there already"}
    if route.method == "GET":
        found["304"] = {"description": "it is as the ETag in If-None-Match says"}
    codes: dict[int, list[str]] = {}
    of_tenants = () if route.operation.entry.whose == "platform" else (errors.UnknownTenant,)
    for kind in (*route.errors, *of_tenants, *_OF_REQUESTS):
        codes.setdefault(ERRORS[kind].status, []).append(kind.__name__)
    for code in (*_ALWAYS, *(_OF_BODIES if route.body is not None else ())):
        codes.setdefault(REFUSALS[code].status, []).append(code)
    for status, names in sorted(codes.items()):
        found[str(status)] = _problem(*names)
    return found


def _problem(*codes: str) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": ", ".join(dict.fromkeys(codes)), "content": content}


def _mended(schema: Any) -> Any:
    """As JSON has it: tuples are lists, and an infinite default is none."""
    if isinstance(schema, dict):
        return {name: _mended(told) for name, told in schema.items()}
    return [_mended(told) for told in schema] if isinstance(schema, list | tuple) else schema

"""unstuck enqueue WORKFLOW …: ask for a workflow to run."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from unstuck.cli import options, output, shapes
from unstuck.cli.jobs import finish
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput
from unstuck.model.payload import decode

app = options.single()

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


@app.command()
def enqueue(
    workflow: Annotated[str, Argument(metavar="WORKFLOW", help="its name")],
    arguments: Annotated[
        list[str] | None,
        Argument(metavar="ARG|NAME=ARG", help="JSON, or plain text where it is no JSON"),
    ] = None,
    kwargs: Annotated[str | None, option("--kwargs", metavar="JSON", help="named arguments as one object")] = None,
    wait: Annotated[bool, option("--wait", help="until it ends; prints its result")] = False,
    timeout: options.Timeout = None,
    priority: Annotated[int | None, option("--priority", help="higher goes first")] = None,
    key: Annotated[str | None, option("--key", help="idempotency key: the same key is the same job")] = None,
    delay: Annotated[
        float | None, option("--delay", read=options.seconds, metavar="DURATION", help="not before, e.g. 5m")
    ] = None,
    queue: Annotated[str | None, option("--queue", help="instead of the workflow's own")] = None,
    json_: options.Json = False,
    app_name: options.AppName = None,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Accept a job: its id on stdout; with --wait its result, and an exit code that says how it ended."""
    positional, named = parse(arguments or [], kwargs)
    chosen = {"priority": priority, "key": key, "delay": delay, "queue": queue}
    how = {name: value for name, value in chosen.items() if value is not None}
    with opened(database, tenant, app=app_name, missing="create") as session:
        ident, created = session.submit(workflow, positional, named, how)
        if not created:
            output.note(f"key {key} is known: this is the job it made before")
        if wait:
            if not json_:
                output.note(f"job {ident}")
            return finish(session, session.wait(ident, timeout), json_, timeout)
        if json_:
            output.emit_json(shapes.job(session.job(ident), session.now()) | {"created": created})
        else:
            output.say(ident)
            output.note(f"follow it: unstuck jobs show {ident}")
    return 0


def parse(arguments: list[str], kwargs: str | None) -> tuple[list[Any], dict[str, Any]]:
    """Words of a command line -> positional and named arguments."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for text in arguments:
        if match := _NAMED.fullmatch(text):
            if match[1] in named:
                raise InvalidInput(f"the argument {match[1]} is given twice")
            named[match[1]] = value_of(match[2])
        elif named:
            raise InvalidInput(f"{text!r} stands after a named argument; put positional ones first")
        else:
            positional.append(value_of(text))
    if kwargs is not None:
        more = decode(kwargs, "--kwargs")
        if not isinstance(more, dict):
            raise InvalidInput('--kwargs must be a JSON object, like \'{"name": "world"}\'')
        named |= more
    return positional, named


def value_of(text: str) -> Any:
    """JSON if it is JSON; what looks like broken JSON is refused, anything else is text."""
    try:
        json.loads(text)
    except ValueError:
        if text.startswith(("{", "[", '"')):
            decode(text, f"the argument {text[:40]}")
        return text
    return decode(text, f"the argument {text[:40]}")

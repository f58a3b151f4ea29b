"""unstuck enqueue WORKFLOW …: ask for a workflow to run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import options, output
from unstuck.cli.jobs.wait import finish
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import CheckedRequest, exists, repeated, session_on, settings_of
from unstuck.model.errors import InvalidArguments, InvalidInput, UnknownJob
from unstuck.model.payload import decode
from unstuck.records import dataclass

app = options.single()

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class JobFlags:
    """How the job is to run, where it is not as its workflow says."""

    priority: Annotated[int | None, option("--priority", help="higher goes first")] = None
    id: Annotated[str | None, option("--id", metavar="UUID", help="the job's id, chosen by you")] = None
    key: Annotated[str | None, option("--key", help="idempotency key: the same key is the same job")] = None
    delay: Annotated[
        float | None, option("--delay", read=options.seconds, metavar="DURATION", help="not before, e.g. 5m")
    ] = None
    at: Annotated[
        datetime | None,
        option("--at", read=options.instant, metavar="TIME", help="not before, e.g. 2030-01-31T18:00:00Z"),
    ] = None
    retries: Annotated[
        int | None, option("--retries", least=0, help="how often it is tried again when its handler raised")
    ] = None
    time_limit: Annotated[
        float | str | None,
        option("--time-limit", read=options.time_limit, metavar="DURATION|unlimited", help="how long it may run"),
    ] = None
    budget: Annotated[
        list[tuple[str, float]] | None,
        option(
            "--budget",
            read=options.amount,
            metavar="UNIT=MOST",
            help="maximum use of a unit, e.g. tokens=5000; may be repeated",
        ),
    ] = None
    queue: Annotated[str | None, option("--queue", metavar="NAME", help="instead of the workflow's own")] = None
    target: Annotated[
        str | None, option("--target", metavar="NAME", help="whose jobs run one at a time, instead of the workflow's")
    ] = None
    limit_key: Annotated[
        str | None, option("--limit-key", metavar="KEY", help="what a key's limit counts, instead of the workflow's")
    ] = None
    tag: Annotated[list[str] | None, option("--tag", metavar="TAG", help="to find it by; may be repeated")] = None
    hold: Annotated[bool, option("--hold", help="accepted, but not run before `unstuck jobs release`")] = False
    after: Annotated[
        list[str] | None, option("--after", metavar="JOB", help="not before this job has ended; may be repeated")
    ] = None
    after_failure: Annotated[
        str | None,
        option("--after-failure", metavar="fail|run", help="if such a job does not complete (default: fail)"),
    ] = None

    def given(self) -> dict[str, Any]:
        """As the options of a submit name them."""
        named = asdict(self) | {"tags": self.tag, "hold": self.hold or None, "timeout": self.time_limit}
        named["budget"] = dict(self.budget) if self.budget else None
        return {
            name: value for name, value in named.items() if value is not None and name not in ("tag", "time_limit")
        }


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
    *,
    flags: JobFlags,
    app_name: options.AppName = None,
    common: options.Common,
) -> int:
    """Accept a job: its id on stdout; with --wait its result, and an exit code that says how it ended."""
    options.check_timeout(wait, timeout, "; how long the job may run is --time-limit")
    positional, named = parse(arguments or [], kwargs)
    settings = settings_of({**common.flags, "app": app_name})
    with _telling_how_to_write_text():
        asked = CheckedRequest.of(settings, workflow, positional, named, flags.given())
    if flags.after and not exists(settings.database):
        raise UnknownJob(flags.after[0])
    with session_on(settings, missing="create" if asked.is_known else "ignore") as session:
        with _telling_how_to_write_text():
            job = session.submit(asked)
        if not job.created:
            output.note(f"key {flags.key} is known: this is the job it made before")
        if wait:
            if not common.json:
                output.note(f"job {job.id}")
            return finish(session.wait(job.id, timeout), common.json, timeout)
        if common.json:
            output.emit_view(job)
        else:
            output.say(job.id)
            output.note(f"follow it: unstuck jobs show {job.id}{repeated(settings, 'database', 'tenant')}")
    return 0


@contextmanager
def _telling_how_to_write_text() -> Iterator[None]:
    """4111 is a number, also where the workflow wants the text of a card: the shell has taken the quotes."""
    try:
        yield
    except InvalidArguments as refused:
        if "expected string, got" not in refused.problem:
            raise
        hint = """text that reads as JSON needs quotes of its own: '"42"'"""
        raise InvalidArguments(refused.workflow, f"{refused.problem}; {hint}") from None


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
    except (ValueError, RecursionError):
        if text.startswith(("{", "[", '"')):
            decode(text, f"the argument {text[:40]}")
        return text
    return decode(text, f"the argument {text[:40]}")

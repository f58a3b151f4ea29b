"""Which jobs are meant, as every command about many jobs spells it."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Annotated, Any

from unstuck.cli import options
from unstuck.cli.parser import option
from unstuck.model.errors import InvalidInput, quoted
from unstuck.records import dataclass


def _argument(text: str) -> tuple[str, Any]:
    """city=Oslo, count=3: an argument's name, and JSON or plain text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidInput(f"{quoted(text)} is not the name of an argument and its value, like city=Oslo")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@dataclass(frozen=True)
class JobFilterFlags:
    state: Annotated[
        list[str] | None, option("--state", "-s", metavar="STATE", help="only these, e.g. BLOCKED; may be repeated")
    ] = None
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only of this workflow")] = None
    queue: Annotated[str | None, option("--queue", "-q", metavar="NAME", help="only of this queue")] = None
    target: Annotated[str | None, option("--target", metavar="NAME", help="only on this target")] = None
    tag: Annotated[str | None, option("--tag", metavar="TAG", help="only with this tag")] = None
    error: Annotated[
        str | None, option("--error", "--error-type", metavar="NAME", help="only of this error, e.g. ExecutionStuck")
    ] = None
    argument: Annotated[
        tuple[str, Any] | None,
        option(
            "--argument",
            read=_argument,
            metavar="NAME=VALUE",
            help="only called with this, e.g. city=Oslo; looks at some thousand jobs at a time",
        ),
    ] = None
    older: Annotated[
        float | None,
        option("--older", read=options.seconds, metavar="DURATION", help="submitted longer ago than, e.g. 10m"),
    ] = None
    newer: Annotated[
        float | None, option("--newer", read=options.seconds, metavar="DURATION", help="submitted within, e.g. 1h")
    ] = None

    def asked(self, now: datetime) -> dict[str, Any]:
        """As operations take it."""
        return {
            "state": tuple(self.state or ()),
            "workflow": self.workflow,
            "queue": self.queue,
            "target": self.target,
            "tag": self.tag,
            "error_type": self.error,
            "before": _ago(now, self.older),
            "since": _ago(now, self.newer),
            "argument": self.argument,
        }


@dataclass(frozen=True)
class BulkFlags(JobFilterFlags):
    """Of a verb that takes a filter in place of ids."""

    every: Annotated[bool, option("--every", help="all jobs of the tenant, without any filter")] = False
    yes: Annotated[bool, option("--yes", "-y", help="of a filter: do not ask, however many they are")] = False
    watch: Annotated[bool, option("--watch", help="of a filter: stay until it has ended")] = False

    @property
    def is_filter(self) -> bool:
        """Whether anything says which jobs are meant."""
        said = (getattr(self, field.name) for field in fields(JobFilterFlags))
        return self.every or any(value is not None for value in said)


def _ago(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now - timedelta(seconds=seconds)

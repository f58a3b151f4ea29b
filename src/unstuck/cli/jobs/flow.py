"""unstuck jobs steps, partials, tree: what a job has recorded, given and spawned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.flow import called, draw
from unstuck.cli.jobs.texts import as_json, first_line
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.observe.stream import Stream
from unstuck.operations import jobs
from unstuck.operations.table import Caller
from unstuck.views import Page, plain
from unstuck.views.flow import PartialView, StepView


def steps(job: options.JobName, *, common: options.Common) -> None:
    """The steps that a job has finished. Later attempts get their results instead of running them again."""
    with opened(common) as session:
        now = session.now()
        if common.json:
            for page in _pages_of_steps(session.caller, job):
                output.emit_each(map(plain, page))
            return
        output.table(
            ["STEP", "RUN", "ATTEMPT", "FINISHED", "TOOK", "RESULT"],
            [
                (
                    called(s.name, s.ordinal),
                    s.run,
                    f"#{s.attempt}",
                    output.age(s.at, now),
                    output.duration(s.duration_ms / 1000),
                    first_line(as_json(s.result)),
                )
                for page in _pages_of_steps(session.caller, job)
                for s in page
            ],
            empty="it has finished no step so far; ctx.step(name, function) makes one",
        )


def _pages_of_steps(caller: Caller, job: str) -> Iterator[Page[StepView]]:
    """All of them, some at a time: their results may be large."""
    after: str | None = "0"
    while after is not None:
        page = jobs.steps(caller, job, after=after)
        yield page
        after = page.next


def partials(
    job: options.JobName,
    follow_: Annotated[bool, option("--follow", "-f", help="go on until the job ends")] = False,
    *,
    common: options.Common,
) -> None:
    """The parts of its result that a job has given before its end. A name that is given again has a new value."""
    with opened(common) as session:
        if follow_:
            _print_as_they_come(Stream(jobs.follow_partials(session.caller, job)), common.json)
            return
        page = jobs.partials(session.caller, job)
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NAME", "ATTEMPT", "AT", "VALUE"],
        [(p.name, f"#{p.attempt}", output.rfc3339(p.at), first_line(as_json(p.value))) for p in page],
        empty=_NO_PART,
    )


_NO_PART = "it has given no part of its result so far; ctx.partial(name, value) does"


def _print_as_they_come(parts: Iterable[PartialView], in_json: bool) -> None:
    is_none = True
    for part in parts:
        is_none = False
        _print_part(part, in_json)
    if is_none and not in_json:
        output.note(_NO_PART)


def _print_part(part: PartialView, in_json: bool) -> None:
    if in_json:
        output.emit_view(part)
    else:
        line = f"{output.rfc3339(part.at)}  #{part.attempt}  {part.name}  {first_line(as_json(part.value))}"
        output.say(output.visible(line))


def tree(
    job: options.JobName,
    limit: Annotated[int, option("--limit", "-n", help="maximum jobs", least=1, most=10_000)] = 200,
    *,
    common: options.Common,
) -> None:
    """Parents and children, from the topmost parent down, each with its state."""
    with opened(common) as session:
        ident = session.lookup.job_id(job)
        top = jobs.tree(session.caller, ident, limit=limit)
    if common.json:
        output.emit_view(top)
    else:
        draw(top, ident)

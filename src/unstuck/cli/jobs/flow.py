"""unstuck jobs steps, partials, tree: what a job has recorded, given and spawned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from unstuck.cli import options, output, shapes
from unstuck.cli.flow import called, draw
from unstuck.cli.jobs.texts import first_line
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.model.parts import Part
from unstuck.observe.flow import family
from unstuck.observe.follow import follow
from unstuck.observe.parts import PartialsReader


def steps(job: options.JobName, *, common: options.Common) -> None:
    """The steps that a job has finished. Later attempts get their results instead of running them again."""
    with opened(common) as session:
        record = session.job(job)
        found, now = session.lookup.steps(record.id), session.now()
    if common.json:
        output.emit_each(map(shapes.step, found))
        return
    output.table(
        ["STEP", "RUN", "ATTEMPT", "FINISHED", "TOOK", "RESULT"],
        [
            (
                called(s.name, s.ordinal),
                s.run,
                f"#{s.token}",
                output.age(s.at, now),
                output.duration(s.duration_ms / 1000),
                first_line(s.result),
            )
            for s in found
        ],
        empty="it has finished no step so far; ctx.step(name, function) makes one",
    )


def partials(
    job: options.JobName,
    follow_: Annotated[bool, option("--follow", "-f", help="go on until the job ends")] = False,
    *,
    common: options.Common,
) -> None:
    """The parts of its result that a job has given before its end. A name that is given again has a new value."""
    with opened(common) as session:
        ident = session.job(job).id
        if follow_:
            _print_as_they_come(follow(PartialsReader(session.lookup, ident).look), common.json)
            return
        found = session.lookup.parts(ident)
    if common.json:
        _print_as_they_come(found, common.json)
        return
    output.table(
        ["NAME", "ATTEMPT", "AT", "VALUE"],
        [(p.name, f"#{p.token}", output.rfc3339(p.at), first_line(p.value)) for p in found],
        empty=_NO_PART,
    )


_NO_PART = "it has given no part of its result so far; ctx.partial(name, value) does"


def _print_as_they_come(parts: Iterable[Part], as_json: bool) -> None:
    is_none = True
    for part in parts:
        is_none = False
        _print_part(part, as_json)
    if is_none and not as_json:
        output.note(_NO_PART)


def _print_part(part: Part, as_json: bool) -> None:
    if as_json:
        output.emit_json(shapes.part(part))
    else:
        line = f"{output.rfc3339(part.at)}  #{part.token}  {part.name}  {first_line(part.value)}"
        output.say(output.visible(line))


def tree(
    job: options.JobName,
    limit: Annotated[int, option("--limit", "-n", help="maximum jobs", least=1, most=10_000)] = 200,
    *,
    common: options.Common,
) -> None:
    """Parents and children, from the topmost parent down, each with its state."""
    with opened(common) as session:
        record = session.job(job)
        top = family(session.store, session.tenant, record.id, limit)
    if common.json:
        output.emit_json(shapes.branch(top))
    else:
        draw(top, record.id)

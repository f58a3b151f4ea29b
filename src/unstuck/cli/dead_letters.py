"""unstuck dead-letters …: what never ran, or ran out of tries: look, sign anew, redrive, discard, export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Annotated, Any

from unstuck.cli import bulks, exits, options, output
from unstuck.cli.event_texts import narrate
from unstuck.cli.jobs.verbs import each_of, print_changed
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import CanaryNotCompleted, InvalidInput
from unstuck.model.lifecycle import JobState
from unstuck.operations import dead_letters, jobs
from unstuck.operations.table import Caller
from unstuck.records import dataclass
from unstuck.store.port import EVERY
from unstuck.views.bulks import CountView
from unstuck.views.dead_letters import LetterStory

app = options.group(
    "Dead letters: jobs that never ran because their signature was refused, or ran out of tries.",
    default="list",
)


@dataclass(frozen=True)
class LetterFlags:
    """Which dead letters are meant."""

    reason: Annotated[
        str | None, option("--reason", "-r", metavar="CODE", help="only of this reason, e.g. altered or exhausted")
    ] = None
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only of this workflow")] = None
    queue: Annotated[str | None, option("--queue", "-q", metavar="NAME", help="only of this queue")] = None
    older: Annotated[
        float | None,
        option("--older", read=options.seconds, metavar="DURATION", help="dead for longer than, e.g. 10m"),
    ] = None
    newer: Annotated[
        float | None, option("--newer", read=options.seconds, metavar="DURATION", help="dead within, e.g. 1h")
    ] = None

    def asked(self, now: datetime) -> dict[str, Any]:
        """As operations take it."""
        return {
            "reason": self.reason,
            "workflow": self.workflow,
            "queue": self.queue,
            "before": None if self.older is None else now - timedelta(seconds=self.older),
            "since": None if self.newer is None else now - timedelta(seconds=self.newer),
        }

    @property
    def is_filter(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(LetterFlags))


AllTenants = Annotated[bool, option("--all-tenants", help="of all tenants")]
Every = Annotated[bool, option("--every", help="all dead letters of the tenant, without any filter")]


@app.command("list")
def list_(
    limit: Annotated[int, options.rows(dead_letters.MOST_LISTED)] = 50,
    after: options.AfterNumber = None,
    all_tenants: AllTenants = False,
    *,
    wanted: LetterFlags,
    common: options.Common,
) -> None:
    """The dead letters there are, the newest first: whose, why, and how long they are kept."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        now = session.now()
        caller = session.caller.about(EVERY if all_tenants else None)
        page = dead_letters.list_(caller, **wanted.asked(now), limit=limit, after=after)
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["JOB", "WORKFLOW", "TENANT", "REASON", "SINCE", "GONE", "KEY", "MESSAGE"],
        [
            (
                each.job,
                each.workflow,
                each.tenant,
                each.reason,
                output.age(each.since_at, now),
                output.age(each.until_at, now) if each.until_at else None,
                each.key,
                _line(each.message),
            )
            for each in page
        ],
        empty="no dead letters",
    )
    output.tell_next(page)


@app.command()
def count(*, wanted: LetterFlags, common: options.Common) -> None:
    """How many dead letters a filter wants."""
    with opened(common) as session:
        view = dead_letters.count(session.caller, **wanted.asked(session.now()))
    if common.json:
        output.emit_view(view)
    else:
        output.say(_counted(view))


@app.command()
def show(job: options.JobName, all_tenants: options.Anybodys = False, *, common: options.Common) -> None:
    """One dead letter. Its whole envelope, and how its job came to be one."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        view, now = dead_letters.get(session.caller.about(EVERY if all_tenants else None), job), session.now()
    if common.json:
        output.emit_view(view)
    else:
        _print(view, now)


@app.command()
def export(all_tenants: AllTenants = False, *, wanted: LetterFlags, common: options.Common) -> None:
    """All of them with their whole envelopes, a line of JSON each."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        caller = session.caller.about(EVERY if all_tenants else None)
        asked = wanted.asked(session.now())
        after: str | None = None
        while True:
            page = dead_letters.export(caller, **asked, after=after)
            for each in page:
                output.emit_view(each)
            if page.next is None:
                return
            after = page.next


@app.command()
def resign(
    jobs: options.JobsOrFilter = None,
    signature: Annotated[
        str | None,
        option("--signature", metavar="JSON", help="made elsewhere, for this one job; else by a key of yours"),
    ] = None,
    every: Every = False,
    by: options.By = None,
    *,
    wanted: LetterFlags,
    common: options.Common,
) -> int:
    """Sign jobs that never ran anew, as they are stored, and let them run. For admins who have looked at them."""
    given = None if signature is None else _signature(signature)
    if given is not None and len(jobs or ()) != 1:
        raise InvalidInput("a signature is for one job: name it")
    chosen = _chosen("resign", jobs, wanted, common, every)
    return each_of(
        chosen,
        common,
        by,
        lambda caller, job: print_changed(dead_letters.resign(caller, job, signature=given), common.json),
    )


@app.command()
def redrive(
    jobs: options.JobsOrFilter = None,
    force: Annotated[
        bool, option("--force", help="also those whose signature was refused: keys or rules were mended since")
    ] = False,
    every: Every = False,
    canary: Annotated[
        bool, option("--canary", help="of a filter: one first, and the rest once it completed")
    ] = False,
    yes: Annotated[bool, option("--yes", "-y", help="of a filter: do not ask, however many they are")] = False,
    watch: Annotated[bool, option("--watch", help="of a filter: stay until it has ended")] = False,
    timeout: options.Timeout = None,
    by: options.By = None,
    *,
    wanted: LetterFlags,
    common: options.Common,
) -> int:
    """Let dead letters go on: those that are named, or all that a filter wants. What ran out of tries runs again from
    its start."""
    if jobs:
        if wanted.is_filter or every or canary or watch:
            raise InvalidInput("name jobs, or say by a filter which ones: not both")
        return each_of(
            jobs,
            common,
            by,
            lambda caller, job: print_changed(dead_letters.redrive(caller, job, force=force), common.json),
        )
    _check_filter("redrive", wanted, every)
    if timeout is not None and not canary:
        raise InvalidInput("--timeout says how long --canary waits")
    with opened(common) as session:
        caller, asked = session.caller.about(by=by), wanted.asked(session.now())
        found = dead_letters.count(caller, **asked)
        if not yes:
            bulks.confirm(f"redrive {_counted(found)}?")
        expected = found.number if found.exact and not yes else None
        first = _try_first(session, caller, asked, force, timeout) if canary else None
        if first is not None and expected is not None:
            expected -= 1
        view = dead_letters.redrive_all(caller, **asked, force=force, canary=first, expected=expected)
        if watch:
            return bulks.follow(session, view, common.json)
        if common.json:
            output.emit_view(view)
            return exits.OK
    output.say(f"bulk {view.number} is started: workers redrive {_counted(found)}, from within some seconds on")
    output.note(f"how far it is: unstuck bulks show {view.number} --watch")
    return exits.OK


@app.command()
def discard(
    jobs: options.JobsOrFilter = None,
    every: Every = False,
    by: options.By = None,
    *,
    wanted: LetterFlags,
    common: options.Common,
) -> int:
    """Take dead letters away. Their jobs stay as they are."""

    def act(caller: Caller, job: str) -> None:
        view = dead_letters.discard(caller, job)
        if common.json:
            output.emit_view(view)
        else:
            output.say(f"{view.job}  discarded; the job itself stays: unstuck jobs show {view.job}")

    return each_of(_chosen("discard", jobs, wanted, common, every), common, by, act)


def _chosen(
    verb: str, jobs: list[str] | None, wanted: LetterFlags, common: options.Common, every: bool
) -> list[str] | Iterator[str]:
    """Those that are named, or those that a filter wants."""
    if jobs and (wanted.is_filter or every):
        raise InvalidInput("name jobs, or say by a filter which ones: not both")
    if jobs:
        return jobs
    _check_filter(verb, wanted, every)
    return _matching(wanted, common)


def _check_filter(verb: str, wanted: LetterFlags, every: bool) -> None:
    if not wanted.is_filter and not every:
        raise InvalidInput(
            f"which ones? unstuck dead-letters {verb} JOB…, or a filter: --reason, --workflow, --queue, --older, "
            "--newer; all of the tenant: --every"
        )


def _matching(wanted: LetterFlags, common: options.Common) -> Iterator[str]:
    """Page by page from the newest down: what is acted upon leaves the list, what is not stays above the place."""
    with opened(common) as session:
        asked, after = wanted.asked(session.now()), None
        while True:
            page = dead_letters.list_(session.caller, **asked, limit=500, after=after)
            yield from (each.job for each in page if each.number is not None)
            if page.next is None:
                return
            after = page.next


def _try_first(session: Session, caller: Caller, asked: dict[str, Any], force: bool, timeout: float | None) -> str:
    """Redrive the newest of them, and wait for its end. Its id."""
    letters = [each for each in dead_letters.list_(caller, **asked, limit=10) if each.number is not None]
    if not letters:
        raise InvalidInput("there is no such dead letter: nothing was redriven")
    job = dead_letters.redrive(caller, letters[0].job, force=force)
    output.note(f"the canary is job {job.id}; the others go on once it completed")
    left = timeout
    while not job.state.is_final and job.state is not JobState.PAUSED and (left is None or left > 0):
        part = 30.0 if left is None else min(30.0, left)
        job = jobs.wait(caller, job.id, timeout=part)
        left = None if left is None else left - part
    if job.state is not JobState.COMPLETED:
        raise CanaryNotCompleted(job.id, job.state)
    return job.id


def _signature(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput("--signature is not an object of JSON with version, key, expires_at and signature")
    return found


def _print(letter: LetterStory, now: datetime) -> None:
    output.say(f"{output.styled(letter.workflow, 'bold')}  {letter.job}")
    output.say(f"{output.state(letter.state)}  {output.visible(letter.meaning)}\n")
    until = f"{output.rfc3339(letter.until_at)} ({output.age(letter.until_at, now)})" if letter.until_at else None
    for label, value in (
        ("reason", letter.reason),
        ("message", letter.message),
        ("since", f"{output.rfc3339(letter.since_at)} ({output.age(letter.since_at, now)})"),
        ("kept until", until),
        ("run", letter.run),
        ("queue", f"{letter.queue}, priority {letter.priority}, tenant {letter.tenant}"),
        ("target", letter.target),
        ("payload", letter.payload if letter.payload is not None else _call(letter)),
        ("signature", None if letter.signature is None else json.dumps(letter.signature, ensure_ascii=False)),
    ):
        if value is not None:
            output.say(f"  {label:<10} {output.indented(output.visible(str(value)), 13)}")
    output.say("\nHistory")
    for event in letter.history:
        output.say(f"  {event.number:>3}  {output.rfc3339(event.at)}  {output.visible(narrate(event))}")
    output.note(f"what can be done: unstuck why {letter.job}")


def _call(letter: LetterStory) -> str:
    return json.dumps({"args": list(letter.args), "kwargs": dict(letter.kwargs)}, ensure_ascii=False)


def _counted(view: CountView) -> str:
    return f"{'' if view.exact else 'at least '}{output.count(view.number, 'dead letter')}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99] + "…"

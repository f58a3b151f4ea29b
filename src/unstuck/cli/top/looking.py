"""The threads of `unstuck top`: one looks again and again, one does what keys ask. The screen waits for neither."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from msgspec.structs import replace

from unstuck import clock
from unstuck.cli.asking import Asker
from unstuck.cli.output import age, duration, rfc3339
from unstuck.cli.top.frame import Seen
from unstuck.cli.top.state import Sheet, TopAction
from unstuck.model.errors import UnstuckError
from unstuck.model.spelling import about
from unstuck.operations import approvals, jobs, queues, top
from unstuck.views.gates import UnpauseView
from unstuck.views.jobs import StackView
from unstuck.views.top import TopView
from unstuck.views.why import WhyAnswer

#: Seconds between two looks, and between two that ask `health` too.
EVERY, HEALTH_EVERY = 1.0, 5.0
#: Looking may take so much of the time: where a look is slow, it is taken less often.
SHARE = 0.25
#: Seconds after which somebody wants to know that an answer is waited for.
SLOW = 3.0
#: Running jobs that are looked at.
MOST = 200


class Looker:
    """`tell`: called, on its thread, when there is something new to see."""

    def __init__(self, asker: Asker, queue: str | None, workflow: str | None, tell: Callable[[], None]) -> None:
        self._asker = asker
        self._wanted = {"queue": queue, "workflow": workflow, "limit": MOST}
        self._tell = tell
        self._soon, self._ended = threading.Event(), False
        self._healthy_at: float | None = None
        self._away_since: float | None = None
        #: When the look began that is under way.
        self._began: float | None = None
        self._seen = Seen(asker.where)
        self._thread = threading.Thread(target=self._loop, name="unstuck-top-look", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, within: float) -> None:
        self._ended = True
        self._soon.set()
        self._thread.join(within)

    def look_soon(self) -> None:
        self._soon.set()

    @property
    def seen(self) -> Seen:
        """As of now: how long it has not answered goes on without it."""
        seen, since, began, now = self._seen, self._away_since, self._began, clock.boot()
        if since is not None:
            return Seen(seen.where, seen.view, seen.error, now - since)
        if began is not None and now - began > SLOW:
            return Seen(seen.where, seen.view, "it takes its time", now - began)
        return seen

    def look(self) -> TopView:
        """Once, with all there is."""
        return self._asker.ask(top.get, **self._wanted, health=True)

    def _loop(self) -> None:
        while not self._ended:
            began = self._began = clock.boot()
            self._once(began)
            self._began = None
            self._tell()
            took = clock.boot() - began
            self._soon.wait(max(EVERY - took, took / SHARE - took, 0.05))
            self._soon.clear()

    def _once(self, now: float) -> None:
        asks_health = self._healthy_at is None or now - self._healthy_at >= HEALTH_EVERY
        try:
            view = self._asker.ask(top.get, **self._wanted, health=asks_health)
        except (UnstuckError, OSError) as error:
            self._away_since = now if self._away_since is None else self._away_since
            self._seen = Seen(self._asker.where, self._seen.view, " ".join(str(error).split()))
            return
        if asks_health:
            self._healthy_at = now
        else:
            view = _with_health(view, self._seen.view)
        self._away_since, self._seen = None, Seen(self._asker.where, view)


def _with_health(view: TopView, before: TopView | None) -> TopView:
    """What `health` said last stands until it is asked again."""
    if before is None:
        return view
    sick = tuple(need for need in before.needs if need.kind == "health")
    return replace(view, healthy=before.healthy, needs=(*view.needs, *sick))


#: What came of an action: a text to read, or a line.
Came = Sheet | str


class Doer:
    """One thing after the other; what came of each is taken by the screen."""

    def __init__(self, asker: Asker, tell: Callable[[], None]) -> None:
        self._asker = asker
        self._tell = tell
        self._asked: queue.SimpleQueue[TopAction | None] = queue.SimpleQueue()
        self._came: queue.SimpleQueue[Came] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="unstuck-top-do", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, within: float) -> None:
        self._asked.put(None)
        self._thread.join(within)

    def do(self, action: TopAction) -> None:
        self._asked.put(action)

    def taken(self) -> Came | None:
        try:
            return self._came.get_nowait()
        except queue.Empty:
            return None

    def _loop(self) -> None:
        while (action := self._asked.get()) is not None:
            try:
                came = done(self._asker, action)
            except (UnstuckError, OSError) as error:
                came = f"{action.verb}: {error}"
            self._came.put(came)
            self._tell()


def done(asker: Asker, action: TopAction) -> Came:
    subject = action.subject
    match action.verb:
        case "why":
            return _why(asker.ask(jobs.why, subject))
        case "stack":
            return _stack(asker.ask(jobs.stack, subject))
        case "cancel":
            job = asker.ask(jobs.cancel, subject)
            return f"{job.workflow} {job.id}: {job.shown_state}, {job.meaning}"
        case "approve" | "reject":
            operation = approvals.approve if action.verb == "approve" else approvals.reject
            asker.ask(operation, subject, key=action.key)
            return f"{'approved' if action.verb == 'approve' else 'rejected'}: {subject} goes on"
        case "pause":
            asker.ask(queues.pause, subject)
            return f"queue {subject} is paused: nothing new starts from it"
        case "unpause":
            return _unpaused(asker.ask(queues.unpause, subject))
        case _:
            return ""


def _unpaused(answer: UnpauseView) -> str:
    """One for every tenant is lifted by a command that says so."""
    if answer.left:
        return f"still paused for every tenant: {about('unstuck queues unpause', answer.name, '--all-tenants')}"
    return f"the pause of queue {answer.name} was lifted" if answer.lifted else f"queue {answer.name} was not paused"


def _why(answer: WhyAnswer) -> Sheet:
    lines = [answer.verdict]
    for reason in answer.reasons:
        lines += ["", f"{reason.code}: {reason.sentence}"]
        if reason.since_at is not None:
            lines.append(f"  since {rfc3339(reason.since_at)} ({age(reason.since_at, answer.at)})")
        if reason.until_at is not None:
            lines.append(f"  until {rfc3339(reason.until_at)} ({age(reason.until_at, answer.at)})")
        lines.append(f"  who   {reason.actor}")
        if reason.remedy:
            lines.append(f"  do    {reason.remedy}")
    return Sheet(f"why {answer.job}  {answer.state}", tuple(lines))


def _stack(shown: StackView) -> Sheet:
    where = f"attempt #{shown.attempt} on worker {shown.worker}{f', process {shown.pid}' if shown.pid else ''}"
    lasts = ""
    if shown.since_at is not None:
        lasts = f", {duration(max(0.0, (shown.at - shown.since_at).total_seconds()))} after its start"
    head = f"{shown.source}: {where}{lasts}"
    error = [] if not shown.error_type else [f"{shown.error_type}: {shown.error_message}"]
    return Sheet(f"stack of {shown.workflow} {shown.job}", (head, *error, "", *shown.stack.rstrip().splitlines()))

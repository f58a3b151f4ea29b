"""unstuck health: one look at everything, for people and for probes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

from unstuck import clock
from unstuck.cli import checks, exits, options, output
from unstuck.cli.checks import Check
from unstuck.cli.db import versions
from unstuck.cli.parser import option
from unstuck.cli.session import Session, how_to_migrate, opened
from unstuck.cli.worker_info import ALIVE, import_error, is_ready, roles, start_error
from unstuck.cli.workers import is_worth_showing, role_text
from unstuck.model.errors import StoreBusy, StoreError
from unstuck.model.job import WorkerRecord

app = options.single()

BLOCKED_LOOK = 100
#: So many of those in trouble are named.
NAMED = 10


@app.command()
def health(
    need_workers: Annotated[
        bool, option("--workers", off="--no-workers", help="a database without a worker is unhealthy (default)")
    ] = True,
    worker: Annotated[
        str | None, option("--worker", metavar="NAME", help="this one must be active and ready: a readiness probe")
    ] = None,
    bounds: Annotated[bool, option("--bounds", help="also how long things can take at most")] = False,
    *,
    common: options.Common,
) -> int:
    """Database reachable, schema current, workers alive, nothing in trouble. Exit code 10 if not, 6 if the database
    cannot be reached. A warning changes no exit code: it is about single things."""
    with opened(common) as session:
        answers = list(_checks(session, need_workers, worker))
        limits = session.settings.times.bounds()
    healthy = all(check.ok for check in answers if check.fatal)
    if common.json:
        output.emit_json(
            {
                "healthy": healthy,
                "checks": [
                    {"name": c.name, "ok": c.ok, "detail": c.detail, "fatal": c.fatal}
                    for c in answers
                ],
                "bounds": limits,
            }
        )  # fmt: skip
    else:
        for check in answers:
            _print(check)
        if bounds:
            output.say("\nAt most, while the database can be written and a worker is alive:")
            for what, seconds in limits.items():
                output.say(f"  {output.duration(seconds):>7}  {what}")
    return exits.OK if healthy else exits.UNHEALTHY if answers[0].ok else exits.UNREACHABLE


def _print(check: Check) -> None:
    mark, style = ("ok", "green") if check.ok else ("BAD", "bold red") if check.fatal else ("warn", "yellow")
    output.say(f"{output.styled(f'{mark:<4}', style)}  {check.name:<13} {output.visible(check.detail)}")


def _checks(session: Session, need_workers: bool, worker: str | None) -> Iterator[Check]:
    """Stops at the first thing without which the others cannot be asked; the database comes first."""
    try:
        yield from _asked(session, need_workers, worker)
    except StoreBusy as error:
        from unstuck.observe.why import with_holder

        yield Check("database", False, with_holder(session.store, error))
    except StoreError as error:
        yield Check("database", False, str(error))


def _asked(session: Session, need_workers: bool, worker: str | None) -> Iterator[Check]:
    yield _reachable(session)
    if worker is None and session.store.schema_version() > 0:
        yield from checks.locks(session)
    schema = _schema(session)
    yield schema
    if not schema.ok:
        return
    if worker is not None:  # a probe of one worker is not to fail for what others do
        yield _one_worker(session, worker)
        return
    unwritable = list(checks.writes(session))
    yield from unwritable
    found, now = list(session.workers()), session.now()
    yield from checks.leaps(session, now)
    yield from _workers(found, need_workers, now, timedelta(seconds=session.settings.times.silent_after))
    alive = [w for w, state in found if state in ALIVE]
    if alive:  # else everything waits for a worker, and that was said
        yield from checks.roles(alive, now)
        yield from checks.sweeps(session, now)
        yield from checks.inbox(session, now)
    # Where nothing can be written, that is why nobody takes them.
    has_room = _has_room(found) and not unwritable
    yield checks.queue(session, has_room, now)
    yield from _targets(session)
    yield from checks.quarantine(session, now)
    yield from checks.notifications(session, now)


def _has_room(found: list[tuple[WorkerRecord, str]]) -> bool:
    """Whether a worker that is ready has a free slot, as far as it says how many it has."""
    ready = [w for w, state in found if is_ready(w, state)]
    return any(not isinstance(w.info.get("slots"), int) or w.running < w.info["slots"] for w in ready)


def _reachable(session: Session) -> Check:
    before = clock.boot()
    session.store.schema_version()  # the one question that a database without our tables can answer
    return Check("database", True, f"{session.shown_database} answered in {output.duration(clock.boot() - before)}")


def _schema(session: Session) -> Check:
    found, wanted = versions(session)
    if found < wanted:
        remedy = how_to_migrate(session.settings)
        if found == 0:
            return Check("schema", False, f"there are no tables yet; make them: {remedy}")
        return Check("schema", False, f"version {found} is behind this code, which needs {wanted}: {remedy}")
    return Check("schema", True, f"version {found}")


def _one_worker(session: Session, name: str) -> Check:
    """Those of the name that left are history; two that live (a rolling restart) must not hide each other."""
    living = [(w, state) for w, state in session.workers() if w.name == name and state != "gone"]
    if not living:
        return Check("worker", False, f"there is no worker {name}: unstuck workers")
    worker, state = max(living, key=lambda seen: (is_ready(*seen), seen[0].started_at))
    if is_ready(worker, state):
        failing = "".join(f"; its {role_text(role)}" for role in roles(worker, session.now())[:1])
        return Check("worker", True, f"{name} is ready, running {worker.running}{failing}")
    return Check("worker", False, f"{name} is {state}: {_hindrance(worker, state, session.now())}")


def _hindrance(worker: WorkerRecord, state: str, now: datetime) -> str:
    if state == "draining":
        return f"it takes nothing new, {output.count(worker.running, 'job')} to finish"
    if state != "active":
        return "no beat for too long"
    if import_error(worker.info):
        return "it cannot import the app: unstuck workers"
    if start_error(worker.info):
        return "it cannot start processes: unstuck workers"
    if failing := roles(worker, now):
        return f"its {role_text(failing[0])}: unstuck workers"
    return "it is starting, no process is up yet"


def _workers(
    found: list[tuple[WorkerRecord, str]], needed: bool, now: datetime, silent_after: timedelta
) -> list[Check]:
    alive = [w for w, state in found if state in ALIVE]
    silent = [
        w.name for w, state in found if state in ("lost", "offline", "fenced") and is_worth_showing(w, state, now)
    ]
    # Their lease holds, but what fails there cannot be told either.
    silent += [w.name for w in alive if now - w.heartbeat_at > silent_after]
    broken = [w.name for w in alive if import_error(w.info)]
    barren = [w.name for w in alive if start_error(w.info)]
    ready = sum(is_ready(w, state) for w, state in found)
    told = f"{len(alive)} alive, {ready} ready, running {sum(w.running for w in alive)}"
    answers = [Check("workers", bool(alive), told if alive else "none alive: unstuck worker", fatal=needed)]
    if alive and not ready:
        answers.append(Check("ready", False, "no worker takes new jobs: they drain, or still start", fatal=False))
    if silent:
        more = f" and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
        detail = f"{', '.join(silent[:NAMED])}{more}: no beat for too long"
        answers.append(Check("silent", False, detail, fatal=False))
    if broken:
        answers.append(Check("import", False, f"{', '.join(broken)} cannot import the app: unstuck workers"))
    if barren:
        answers.append(Check("processes", False, f"{', '.join(barren)} cannot start them: unstuck workers"))
    return answers


def _targets(session: Session) -> list[Check]:
    """Only if some are blocked: most people use none."""
    blocked = session.lookup.targets(blocked=True, limit=BLOCKED_LOOK)
    if not blocked:
        return []
    number = f"{len(blocked)}{'+' if len(blocked) == BLOCKED_LOOK else ''}"
    since = output.age(blocked[0].blocked_at, session.now())
    detail = f"{number} blocked, the first {since} by {blocked[0].blocked_by}: unstuck targets --blocked"
    return [Check("targets", False, detail, fatal=False)]

"""unstuck health: one look at everything, for people and for probes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from unstuck import clock
from unstuck.cli import exits, options, output
from unstuck.cli.anatomy import ALIVE, import_error, is_ready, start_error
from unstuck.cli.db import versions
from unstuck.cli.parser import option
from unstuck.cli.session import Session, how_to_migrate, opened
from unstuck.cli.workers import is_worth_showing
from unstuck.model.errors import StoreError, UnknownJob
from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.store.port import JobFilter

app = options.single()

WAITS_TOO_LONG = timedelta(minutes=5)
BLOCKED_LOOK = 100


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer; only `fatal` ones decide the exit code."""

    name: str
    ok: bool
    detail: str
    fatal: bool = True


@app.command()
def health(
    need_workers: Annotated[
        bool, option("--workers", off="--no-workers", help="a database without a worker is unhealthy (default)")
    ] = True,
    worker: Annotated[
        str | None, option("--worker", metavar="NAME", help="this one must be active and ready: a readiness probe")
    ] = None,
    bounds: Annotated[bool, option("--bounds", help="also how long things can take at most")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Database reachable, schema current, workers alive. Exit code 10 if not, 6 if the database cannot be reached."""
    with opened(database, tenant) as session:
        checks = _checks(session, need_workers, worker)
        limits = session.settings.times.bounds()
    healthy = all(check.ok for check in checks if check.fatal)
    if json_:
        output.emit_json(
            {
                "healthy": healthy,
                "checks": [
                    {"name": c.name, "ok": c.ok, "detail": c.detail, "fatal": c.fatal}
                    for c in checks
                ],
                "bounds": limits,
            }
        )  # fmt: skip
    else:
        for check in checks:
            _print(check)
        if bounds:
            output.say("\nAt most, while the database can be written and a worker is alive:")
            for what, seconds in limits.items():
                output.say(f"  {output.duration(seconds):>7}  {what}")
    return exits.OK if healthy else exits.UNHEALTHY if checks[0].ok else exits.UNREACHABLE


def _print(check: Check) -> None:
    mark, style = ("ok", "green") if check.ok else ("BAD", "bold red") if check.fatal else ("warn", "yellow")
    output.say(f"{output.styled(f'{mark:<4}', style)}  {check.name:<9} {check.detail}")


def _checks(session: Session, need_workers: bool, worker: str | None) -> list[Check]:
    """Stops at the first thing without which the others cannot be asked; the database comes first."""
    try:
        reached = _reachable(session)
        schema = _schema(session)
    except StoreError as error:
        return [Check("database", False, str(error))]
    if not schema.ok:
        return [reached, schema]
    if worker is not None:  # a probe of one worker is not to fail for what others do
        return [reached, schema, _one_worker(session, worker)]
    return [reached, schema, *_workers(session, need_workers), _queue(session), *_targets(session)]


def _reachable(session: Session) -> Check:
    before = clock.boot()
    session.store.now()
    return Check("database", True, f"{session.shown_database} answered in {output.duration(clock.boot() - before)}")


def _schema(session: Session) -> Check:
    found, wanted = versions(session)
    if found < wanted:
        remedy = how_to_migrate(session.settings)
        return Check("schema", False, f"version {found} is behind this code, which needs {wanted}: {remedy}")
    return Check("schema", True, f"version {found}")


def _one_worker(session: Session, name: str) -> Check:
    """Those of the name that left are history; two that live (a rolling restart) must not hide each other."""
    living = [(w, state) for w, state in session.workers() if w.name == name and state != "gone"]
    if not living:
        return Check("worker", False, f"there is no worker {name}: unstuck workers")
    worker, state = max(living, key=lambda seen: (is_ready(*seen), seen[0].started_at))
    if is_ready(worker, state):
        return Check("worker", True, f"{name} is ready, running {worker.running}")
    return Check("worker", False, f"{name} is {state}: {_hindrance(worker, state)}")


def _hindrance(worker: WorkerRecord, state: str) -> str:
    if state == "draining":
        return f"it takes nothing new, {output.count(worker.running, 'job')} to finish"
    if state != "active":
        return "no beat for too long"
    if import_error(worker.info):
        return "it cannot import the app: unstuck workers"
    if start_error(worker.info):
        return "it cannot start processes: unstuck workers"
    return "it is starting, no process is up yet"


def _workers(session: Session, needed: bool) -> list[Check]:
    found = session.workers()
    alive = [w for w, state in found if state in ALIVE]
    now = session.now()
    silent = [
        w.name for w, state in found if state in ("lost", "offline", "fenced") and is_worth_showing(w, state, now)
    ]
    broken = [w.name for w in alive if import_error(w.info)]
    barren = [w.name for w in alive if start_error(w.info)]
    ready = sum(is_ready(w, state) for w, state in found)
    told = f"{len(alive)} alive, {ready} ready, running {sum(w.running for w in alive)}"
    checks = [Check("workers", bool(alive), told if alive else "none alive: unstuck worker", fatal=needed)]
    if alive and not ready:
        checks.append(Check("ready", False, "no worker takes new jobs: they drain, or still start", fatal=False))
    if silent:
        checks.append(Check("silent", False, f"{', '.join(silent)}: no beat for too long", fatal=False))
    if broken:
        checks.append(Check("import", False, f"{', '.join(broken)} cannot import the app: unstuck workers"))
    if barren:
        checks.append(Check("processes", False, f"{', '.join(barren)} cannot start them: unstuck workers"))
    return checks


def _queue(session: Session) -> Check:
    oldest = session.store.jobs(session.tenant, JobFilter(states=(JobState.QUEUED,), newest_first=False), 100).jobs
    now = session.now()
    due = [record for record in oldest if record.available_at <= now]
    if not due:
        return Check("queue", True, "nobody waits")
    first = min(due, key=lambda record: record.available_at)
    waited = now - first.available_at
    detail = f"the oldest due job waits {output.duration(waited.total_seconds())}: {first.workflow} {first.id}"
    if waited < WAITS_TOO_LONG:
        return Check("queue", True, detail, fatal=False)
    return Check("queue", False, f"{detail}: {_reason(session, first.id)}", fatal=False)


def _reason(session: Session, job: str) -> str:
    from unstuck.observe.why import why

    try:
        return why(session.store, session.tenant, job, session.settings.times).verdict
    except UnknownJob:  # forgotten since the look above
        return "it has ended meanwhile"


def _targets(session: Session) -> list[Check]:
    """Only if some are blocked: most people use none."""
    blocked = session.lookup.targets(blocked=True, limit=BLOCKED_LOOK)
    if not blocked:
        return []
    number = f"{len(blocked)}{'+' if len(blocked) == BLOCKED_LOOK else ''}"
    since = output.age(blocked[0].blocked_at, session.now())
    detail = f"{number} blocked, the first {since} by {blocked[0].blocked_by}: unstuck targets --blocked"
    return [Check("targets", False, detail, fatal=False)]

"""Health: one look at everything, for people and for probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from unstuck import clock
from unstuck.model.errors import StoreBusy, StoreError
from unstuck.model.wording import age, count, duration
from unstuck.observe.why import with_holder
from unstuck.operations import checks
from unstuck.operations.checks import answered
from unstuck.operations.table import READER, Caller, operation
from unstuck.views.health import CheckView, HealthView
from unstuck.views.workers import WorkerView

BLOCKED_LOOK = 100
#: So many of those in trouble are named.
NAMED = 10


@operation(role=READER, whose="own", command="health", route="GET /health")
def check(caller: Caller, *, need_workers: bool = True, worker: str | None = None) -> HealthView:
    """Database reachable, schema current, workers alive, nothing in trouble. With `worker` only: this one is active
    and ready. With `need_workers=False` a database without a worker is healthy, too."""
    checks = tuple(_checks(caller, need_workers, worker))
    healthy = all(check.ok for check in checks if check.fatal)
    return HealthView(healthy=healthy, checks=checks, bounds=caller.times.bounds())


def _checks(caller: Caller, need_workers: bool, worker: str | None) -> Iterator[CheckView]:
    """Stops at the first thing without which the others cannot be asked; the database comes first."""
    try:
        yield from _asked(caller, need_workers, worker)
    except StoreBusy as error:
        yield answered("database", False, with_holder(caller.store, error))
    except StoreError as error:
        yield answered("database", False, str(error))


def _asked(caller: Caller, need_workers: bool, worker: str | None) -> Iterator[CheckView]:
    yield _reachable(caller)
    if worker is None and caller.store.schema_version() > 0:
        yield from checks.locks(caller)
    schema = _schema(caller)
    yield schema
    if not schema.ok:
        return
    if worker is not None:  # a probe of one worker is not to fail for what others do
        yield _one_worker(_workers(caller), worker)
        return
    unwritable = list(checks.writes(caller))
    yield from unwritable
    found, now = _workers(caller), caller.store.now()
    yield from checks.leaps(caller, now)
    yield from _of_workers(found, need_workers, now, timedelta(seconds=caller.times.silent_after))
    alive = [w for w in found if w.is_alive]
    if alive:  # else everything waits for a worker, and that was said
        yield from checks.roles(alive)
        yield from checks.sweeps(caller, now)
        yield from checks.inbox(caller, now)
    # Where nothing can be written, that is why nobody takes them.
    has_room = any(w.has_room for w in found) and not unwritable
    yield checks.queue(caller, has_room, now)
    yield from _targets(caller, now)
    yield from checks.schedules(caller, now)
    yield from checks.quarantine(caller, now)
    yield from checks.dead_letters(caller, now)
    yield from checks.notifications(caller, now)


def _workers(caller: Caller) -> list[WorkerView]:
    now = caller.store.now()
    return [WorkerView.of(worker, now, whole=caller.bound is None) for worker in caller.lookup.workers()]


def _reachable(caller: Caller) -> CheckView:
    before = clock.boot()
    caller.store.schema_version()  # the one question that a database without our tables can answer
    return answered("database", True, f"{caller.database} answered in {duration(clock.boot() - before)}")


def _schema(caller: Caller) -> CheckView:
    found, wanted = caller.store.schema_version(), caller.store.shipped_version()
    if found < wanted:
        remedy = f"unstuck db migrate{caller.repeats}"
        if found == 0:
            return answered("schema", False, f"there are no tables yet; make them: {remedy}")
        return answered("schema", False, f"version {found} is behind this code, which needs {wanted}: {remedy}")
    return answered("schema", True, f"version {found}")


def _one_worker(found: Sequence[WorkerView], name: str) -> CheckView:
    """Those of the name that left are history; two that live (a rolling restart) must not hide each other."""
    living = [w for w in found if w.name == name and w.state != "gone"]
    if not living:
        return answered("worker", False, f"there is no worker {name}: unstuck workers")
    worker = max(living, key=lambda w: (w.ready, w.started_at))
    if worker.ready:
        failing = "".join(f"; its {role.text}" for role in worker.roles[:1])
        return answered("worker", True, f"{name} is ready, running {worker.running}{failing}")
    return answered("worker", False, f"{name} is {worker.state}: {_hindrance(worker)}")


def _hindrance(worker: WorkerView) -> str:
    if worker.state == "draining":
        return f"it takes nothing new, {count(worker.running, 'job')} to finish"
    if worker.state != "active":
        return "no beat for too long"
    if worker.import_error:
        return "it cannot import the app: unstuck workers"
    if worker.start_error:
        return "it cannot start processes: unstuck workers"
    if worker.roles:
        return f"its {worker.roles[0].text}: unstuck workers"
    return "it is starting, no process is up yet"


def _of_workers(
    found: Sequence[WorkerView], needed: bool, now: datetime, silent_after: timedelta
) -> Iterator[CheckView]:
    alive = [w for w in found if w.is_alive]
    lost = [w.name for w in found if w.state in ("lost", "offline", "fenced") and w.is_news(now)]
    # One that was started again under its name is as well as anybody.
    silent = [name for name in lost if name not in {w.name for w in alive}]
    # Their lease holds, but what fails there cannot be told either.
    silent += [w.name for w in alive if now - w.heartbeat_at > silent_after]
    broken = [w.name for w in alive if w.import_error]
    barren = [w.name for w in alive if w.start_error]
    ready = sum(w.ready for w in found)
    told = f"{len(alive)} alive, {ready} ready, running {sum(w.running for w in alive)}"
    yield answered("workers", bool(alive), told if alive else "none alive: unstuck worker", fatal=needed)
    if alive and not ready:
        yield answered("ready", False, "no worker takes new jobs: they drain, or still start", fatal=False)
    if silent:
        more = f" and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
        yield answered(
            "silent", False, f"{', '.join(silent[:NAMED])}{more}: no beat for too long: unstuck workers", fatal=False
        )
    if broken:
        yield answered("import", False, f"{', '.join(broken)} cannot import the app: unstuck workers")
    if barren:
        yield answered("processes", False, f"{', '.join(barren)} cannot start them: unstuck workers")


def _targets(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Only if some are blocked: most people use none."""
    blocked = caller.lookup.targets(blocked=True, limit=BLOCKED_LOOK)
    if blocked:
        number = f"{len(blocked)}{'+' if len(blocked) == BLOCKED_LOOK else ''}"
        since = f"the first {age(blocked[0].blocked_at, now)} by {blocked[0].blocked_by}"
        yield answered("targets", False, f"{number} blocked, {since}: unstuck targets --blocked", fatal=False)

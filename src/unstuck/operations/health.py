"""Health: one look at everything, for people and for probes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from unstuck import clock
from unstuck.model.errors import StoreBusy, StoreError
from unstuck.model.wording import count, duration
from unstuck.observe.why import with_holder
from unstuck.operations import checks
from unstuck.operations.checks import answered
from unstuck.operations.table import READER, Caller, operation
from unstuck.views.health import CheckView, HealthView
from unstuck.views.meaning import one_line
from unstuck.views.workers import WorkerView


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
    schema = checks.schema(caller)
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
    yield from checks.workers(found, need_workers, now, caller.times)
    alive = [w for w in found if w.is_alive]
    if alive:  # else everything waits for a worker, and that was said
        yield from checks.roles(alive)
        yield from _told("sweeps", lambda: checks.sweeps(caller, now))
        yield from _told("inbox", lambda: checks.inbox(caller, now))
    # Where nothing can be written, that is why nobody takes them.
    has_room = any(w.has_room for w in found) and not unwritable
    yield from _told("queue", lambda: [checks.queue(caller, has_room, now)])
    yield from _told("targets", lambda: checks.targets(caller, now))
    yield from _told("schedules", lambda: checks.schedules(caller, now))
    yield from _told("ends", lambda: checks.ends(caller, now))
    yield from _told("webhooks", lambda: checks.webhooks(caller, now))
    yield from _told("secrets", lambda: checks.secrets(caller))
    yield from _told("quarantine", lambda: checks.quarantine(caller, now))
    yield from _told("dead_letters", lambda: checks.dead_letters(caller, now))
    yield from _told("alerts", lambda: checks.alerts(caller, now))
    yield from _told("notifications", lambda: checks.notifications(caller, now))


def _told(name: str, look: Callable[[], Iterable[CheckView]]) -> Iterator[CheckView]:
    """What a database refuses to tell of one thing (a table that its user may not read) hides nothing else, and is no
    reason to end without a word. One that is away or busy has nothing to say of the others either."""
    try:
        yield from look()
    except StoreError:
        raise
    except Exception as error:
        yield answered(name, False, f"cannot be looked at: {type(error).__name__}: {one_line(str(error), 200)}")


def _workers(caller: Caller) -> list[WorkerView]:
    now = caller.store.now()
    return [WorkerView.of(worker, now, whole=caller.bound is None) for worker in caller.lookup.workers()]


def _reachable(caller: Caller) -> CheckView:
    before = clock.boot()
    caller.store.schema_version()  # the one question that a database without our tables can answer
    return answered("database", True, f"{caller.database} answered in {duration(clock.boot() - before)}")


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

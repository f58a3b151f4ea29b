"""The workers: who lives, with which code, how they start processes, and whether they look after what time does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from unstuck.model.wording import count, duration
from unstuck.operations import checks
from unstuck.operations.examinations.exam import DoctorCheck, Exam, finding
from unstuck.version import __version__
from unstuck.views.doctor import FindingView
from unstuck.views.workers import WorkerView

#: Seconds. Two versions of an app side by side for longer are no deploy any more.
DEPLOY = 3600.0
#: What service managers allow where nobody says otherwise: systemd 90 s, Kubernetes 30 s.
USUAL_STOP = 90.0


def workers(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.workers(exam.workers, True, exam.now, exam.caller.times), "workers")


def roles(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.roles(exam.alive), "workers")


def leases(exam: Exam) -> Iterator[FindingView]:
    """Leases that ended, timers and limits that came due, and nobody looked."""
    yield from exam.told(checks.sweeps(exam.caller, exam.now), "jobs whose time has come")
    yield from exam.told(checks.inbox(exam.caller, exam.now), "the inbox")


def body_marks(exam: Exam) -> Iterator[FindingView]:
    marks = exam.caller.store.dead_body_marks(exam.caller.times.margin + exam.late)
    if marks:
        yield finding(
            "body_marks",
            "warning",
            "jobs whose old body may live",
            f"{count(marks, 'job')} or targets wait for a body whose worker is gone for certain; no sweep lifts it",
            "they cannot start again until somebody does",
            "unstuck doctor --fix",
            fixable=True,
        )


def lift(exam: Exam) -> str:
    """By the sweep's own verb: it looks once more, under its lock, whether the lease is over."""
    lifted = exam.caller.store.lift_body_marks(exam.caller.times.margin)
    return f"{count(lifted, 'body mark')} lifted, of workers whose lease is over"


def code(exam: Exam) -> Iterator[FindingView]:
    yield from _of_apps(exam)
    strangers = [worker for worker in exam.alive if worker.info.get("version") not in (None, __version__)]
    if strangers:
        versions = ", ".join(sorted({str(worker.info["version"]) for worker in strangers}))
        yield finding(
            "code",
            "note",
            _named(strangers),
            f"{_verb(strangers)} unstuck {versions}, this is {__version__}",
            "old and new work side by side; what is new works only where it is installed",
            "restart the older ones with the newer version",
        )


def _of_apps(exam: Exam) -> Iterator[FindingView]:
    """Workers of one queue with several versions of its code."""
    by_queue: dict[str, dict[str, list[WorkerView]]] = defaultdict(lambda: defaultdict(list))
    for worker in exam.alive:
        for queue in exam.queues[worker.number]:
            by_queue[queue][worker.code_version].append(worker)
    now, told = exam.now, set[frozenset[str]]()
    for queue, versions in sorted(by_queue.items()):
        if len(versions) < 2 or frozenset(versions) in told:
            continue
        told.add(frozenset(versions))
        youngest = min((now - max(w.started_at for w in found)).total_seconds() for found in versions.values())
        which = "; ".join(f"{version or '?'}: {_named(found)}" for version, found in sorted(versions.items()))
        is_old = youngest > DEPLOY
        yield finding(
            "code",
            "warning" if is_old else "note",
            f"the workers of queue {queue}",
            f"they run {len(versions)} versions of the code, for {duration(youngest)} ({which})",
            "a job runs by whichever takes it: old code may refuse what new code enqueued, and the other way round",
            "restart the older ones, or wait if a deploy is under way: unstuck workers",
        )


def forks(exam: Exam) -> Iterator[FindingView]:
    for reason, found in _grouped(exam.alive, "mode_reason").items():
        if reason and any(worker.info.get("mode") != "fork" for worker in found):
            yield finding(
                "forks",
                "note",
                _named(found),
                f"executors start as programs of their own instead of by fork: {reason}",
                "each of them imports the app by itself: starts take longer, and memory is not shared",
                "start threads and connections when the first job needs them, not when the app is imported",
            )


def drains(exam: Exam) -> Iterator[FindingView]:
    """What workers say of themselves; which manager started them only their host knows (`unstuck doctor` there)."""
    slow = [worker for worker in exam.alive if _stop_time(worker) > USUAL_STOP]
    if slow:
        longest = max(map(_stop_time, slow))
        yield finding(
            "drains",
            "note",
            _named(slow),
            f"a stop may take {duration(longest)} after TERM, which is more than service managers allow by default",
            "a manager that is less patient kills the worker, and what runs in it runs again elsewhere",
            f"allow at least {longest:g} seconds there (TimeoutStopSec=, terminationGracePeriodSeconds), and say so "
            "with UNSTUCK_STOP_TIME",
        )


def _stop_time(worker: WorkerView) -> float:
    said = [worker.info.get(name) for name in ("drain", "kill_grace")]
    return sum(float(each) for each in said if isinstance(each, int | float) and not isinstance(each, bool))


def _grouped(workers: list[WorkerView], fact: str) -> dict[str, list[WorkerView]]:
    found: dict[str, list[WorkerView]] = defaultdict(list)
    for worker in workers:
        found[str(worker.info.get(fact) or "")].append(worker)
    return found


def _named(workers: list[WorkerView]) -> str:
    names = sorted({worker.name for worker in workers})
    more = f" and {len(names) - checks.NAMED} more" if len(names) > checks.NAMED else ""
    return f"{'worker' if len(names) == 1 else 'workers'} {', '.join(names[: checks.NAMED])}{more}"


def _verb(workers: list[WorkerView]) -> str:
    return "it runs" if len(workers) == 1 else "they run"


CHECKS = (
    DoctorCheck("workers", "who is alive and takes jobs; who fell silent", workers),
    DoctorCheck("roles", "what workers say that they cannot do", roles),
    DoctorCheck("leases", "leases that ended and timers that came due, and nobody looked", leases),
    DoctorCheck("body_marks", "jobs that wait for a body that is gone", body_marks, lift),
    DoctorCheck("code", "the versions of the code that workers run", code),
    DoctorCheck("forks", "workers that cannot fork, and why", forks),
    DoctorCheck("drains", "how long workers may take to stop", drains),
)

"""The jobs of all tenants: what nobody will run, what waits for a person, what should have run and did not."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.spelling import given
from unstuck.model.wording import age, count
from unstuck.operations import checks
from unstuck.operations.examinations.exam import DoctorCheck, Exam, finding
from unstuck.views.doctor import FindingView

WHY_JOB = "unstuck why {job} --all-tenants"


def orphans(exam: Exam) -> Iterator[FindingView]:
    """Due jobs whose workflow no living worker has. Where none lives, that was said."""
    living = exam.caller.store.live_workers()
    if not living:
        return
    known, now = {name for worker in living for name in worker.serves.get("workflows", ())}, exam.now
    waiting = [job for job in exam.caller.store.longest_waiting(None) if not job.is_paused]
    orphaned = [job for job in waiting if job.workflow not in known and (now - job.since).total_seconds() > exam.late]
    workflows = sorted({job.workflow for job in orphaned})
    if orphaned:
        first = min(orphaned, key=lambda job: job.since)
        more = f" (and {count(len(workflows) - 1, 'workflow')} more)" if len(workflows) > 1 else ""
        yield finding(
            "orphans",
            "warning",
            f"workflow {first.workflow}{more}",
            f"no living worker has it, and jobs wait for it, the oldest {age(first.since, now)} (job {first.id})",
            f"they fail as UnknownWorkflow after orphan_after ({exam.caller.times.orphan_after / 3600:g} h)",
            "start a worker whose app has it, or cancel them: "
            f"unstuck jobs cancel --state QUEUED {given('--workflow', first.workflow)}",
        )


def unclaimed(exam: Exam) -> Iterator[FindingView]:
    """Due jobs that a free slot should have taken by now."""
    caller, now = exam.caller, exam.now
    waiting = caller.store.longest_waiting(None)
    found = checks.unclaimed(caller, waiting, caller.lookup.workers(), now)
    for job in waiting:
        if job.id in found:
            yield finding(
                "unclaimed",
                "warning",
                f"job {job.id}",
                f"it has been due since {age(job.since, now)} ({job.workflow}), slots are free, and nobody took it",
                "no gate keeps it from running, or only a fault does",
                WHY_JOB.format(job=job.id),
            )


def targets(exam: Exam) -> Iterator[FindingView]:
    """Of all tenants together."""
    found = [stand for stand in exam.caller.store.trouble_stands(None) if stand.what == "targets" and stand.number]
    for stand in found:
        told = checks.answered(
            "targets",
            False,
            f"{stand.number:,} blocked, the first {age(stand.since_at, exam.now)}",
            fatal=False,
            remedy="unstuck targets --blocked",
        )
        yield from exam.told([told], "targets")


def schedules(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.schedules(exam.caller, exam.now), "schedules")


def webhooks(exam: Exam) -> Iterator[FindingView]:
    """Those that cannot be reached, or take nothing."""
    yield from exam.told(checks.webhooks(exam.caller, exam.now), "webhooks")


def alerts(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.alerts(exam.caller, exam.now), "alerts")


def quarantine(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.quarantine(exam.caller, exam.now), "the quarantine")


def dead_letters(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.dead_letters(exam.caller, exam.now), "dead letters")


def notifications(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.notifications(exam.caller, exam.now), "notifications")


CHECKS = (
    DoctorCheck("orphans", "jobs that wait for a workflow which no worker has", orphans),
    DoctorCheck("unclaimed", "due jobs that nobody takes although slots are free", unclaimed),
    DoctorCheck("targets", "targets that a failed job blocks", targets),
    DoctorCheck("schedules", "schedules that do not fire, or whose ticks make no job", schedules),
    DoctorCheck("webhooks", "webhooks that cannot be reached, or take nothing", webhooks),
    DoctorCheck("quarantine", "what could not be written and waits alone", quarantine),
    DoctorCheck("dead_letters", "jobs that never ran, or ran out of tries", dead_letters),
    DoctorCheck("alerts", "alerts that are open", alerts),
    DoctorCheck("notifications", "news that nobody took note of", notifications),
)

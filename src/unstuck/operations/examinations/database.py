"""Whatever the database: its clock, its schema, who holds what, whether it can be written."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.wording import duration
from unstuck.operations import checks
from unstuck.operations.examinations.exam import DoctorCheck, Exam, finding
from unstuck.views.doctor import FindingView

DATABASE = "the database"
#: Seconds. A leap of the clock is one from here on, too.
SKEWED = 1.0


def clock(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.leaps(exam.caller, exam.now), DATABASE)
    offset = exam.caller.store.clock_offset()
    if offset is None or abs(offset.seconds) - offset.within <= SKEWED:
        return
    aside = "ahead of" if offset.seconds > 0 else "behind"
    yield finding(
        "clock",
        "warning",
        "the clocks of this host and of the database",
        f"the database's clock is {duration(abs(offset.seconds))} {aside} this host's",
        "leases go by the database's alone and are safe; times that this host gives as instants (at=, --until, the "
        "end of a signature) mean another moment there, and its logs do not match the history of jobs",
        "set both by a time service: timedatectl status, chronyc tracking",
    )


def schema(exam: Exam) -> Iterator[FindingView]:
    found = checks.schema(exam.caller)
    yield from exam.told([found], DATABASE)
    store = exam.caller.store
    if not found.ok:
        return
    if store.schema_version() > store.shipped_version():
        yield finding(
            "schema",
            "note",
            DATABASE,
            f"its schema is version {store.schema_version()}, newer than this code, which brings "
            f"{store.shipped_version()}",
            "older code goes on with a newer schema; it knows nothing of what is new there",
            "install the newer version here too",
        )
    elif not store.has_current_schema():
        yield finding(
            "schema",
            "warning",
            DATABASE,
            "its views or functions are not those of this version",
            "what is decided there is decided by the rules of another version",
            f"unstuck db migrate{exam.caller.repeats}",
        )


def locks(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.locks(exam.caller), DATABASE)


def writes(exam: Exam) -> Iterator[FindingView]:
    yield from exam.told(checks.writes(exam.caller), DATABASE)


CHECKS = (
    DoctorCheck("schema", "the tables are those that this code needs", schema, needs_schema=False),
    DoctorCheck("locks", "sessions that keep rows of ours from everybody", locks),
    DoctorCheck("writes", "whether anything can be written", writes),
    DoctorCheck("clock", "the clocks of this host and of the database, and their leaps", clock),
)

"""The doctor: what is wrong with this installation, why that matters, and what helps.

`health` asks whether somebody must act now; the doctor looks further, at what will hurt: settings, versions, keys,
disks. It looks at the database, its server or file, and at the workers as they tell it, for all tenants together.
What only a host knows of itself (its service manager, whether the app can be imported) `unstuck doctor` adds there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model.errors import InvalidInput, StoreError, told
from unstuck.operations.examinations import CHECKS
from unstuck.operations.examinations.exam import DoctorCheck, Exam, finding
from unstuck.operations.examinations.running import WITHIN, each_within, examine
from unstuck.operations.table import PLATFORM_ADMIN, Caller, operation
from unstuck.views.doctor import DoctorView, ExaminedView, FindingView, FixView

#: What is asked first of all, and without which nothing can be.
REACHABLE = "database"
#: Seconds that a fix may take: it waits for a quiet moment.
FIX_WITHIN = 25.0


@operation(role=PLATFORM_ADMIN, whose="platform", command="doctor", route="GET /doctor")
def check(caller: Caller, *, only: Iterable[str] = ()) -> DoctorView:
    """What is wrong, the worst first, each with its remedy. `only`: these checks, by their names. Each is bounded in
    time; what could not be checked is a finding too."""
    exam = Exam(replace(caller, tenant=None))
    findings, examined = _examined(exam, chosen(only))
    return DoctorView.of(findings, examined)


@operation(
    role=PLATFORM_ADMIN, effect="change", whose="platform", repeat="same", audited="doctor.fix", command="doctor",
    route="POST /doctor/fix",
)  # fmt: skip
def fix(caller: Caller, *, only: Iterable[str] = ()) -> DoctorView:
    """Mend what can be mended without a risk to anybody who works meanwhile, and say what was done: cut a long
    write-ahead log, let the planner look at tables anew, lift marks of bodies that are gone for certain. Then look
    once more."""
    asked, about = chosen(only), replace(caller, tenant=None)
    before, _ = _examined(Exam(about), asked)
    sick = {found.check for found in before if found.fixable}
    mending = [each for each in asked if each.name in sick and each.fix is not None]
    fixed = tuple(_fixed(Exam(about), each) for each in mending)
    findings, examined = _examined(Exam(about), asked)
    return DoctorView.of(findings, examined, fixed)


def chosen(only: Iterable[str]) -> list[DoctorCheck[Exam]]:
    """Those of these names; without any, all."""
    names = [only] if isinstance(only, str) else list(only)
    known = {each.name for each in CHECKS}
    for name in names:
        if name not in known:
            raise InvalidInput(f"there is no check {told(name)}; there are: {', '.join(sorted(known))}")
    return [each for each in CHECKS if not names or each.name in names]


def _examined(exam: Exam, asked: list[DoctorCheck[Exam]]) -> tuple[tuple[FindingView, ...], tuple[ExaminedView, ...]]:
    """Without a database nothing else can be asked; without tables, little."""
    try:
        version = exam.caller.store.schema_version()
    except StoreError as error:
        away = finding(
            REACHABLE,
            "error",
            exam.caller.database,
            str(error),
            "no job can be accepted, started or ended; nothing else could be checked",
            "start the database, or name the right one with --database",
        )
        return (away,), ()
    return examine(exam, [each for each in asked if version > 0 or not each.needs_schema])


def _fixed(exam: Exam, check: DoctorCheck[Exam]) -> FixView:
    assert check.fix is not None
    mend = check.fix
    [outcome] = each_within([lambda: mend(exam)], within=FIX_WITHIN)
    if outcome.error is not None or outcome.value is None:
        return FixView(check=check.name, ok=False, did=f"it was tried in vain: {outcome.error}")
    exam.caller.store.note_fix(exam.caller.by, check.name, outcome.value)
    return FixView(check=check.name, ok=True, did=outcome.value)


__all__ = ["REACHABLE", "WITHIN", "check", "chosen", "fix"]

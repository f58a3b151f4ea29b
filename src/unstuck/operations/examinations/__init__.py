"""What the doctor looks at: one row of a table per check, in the order they are told.

To add one, write a function `(exam) -> findings` in the module of its room and put a row into that module's `CHECKS`.
It may take a few bounded reads and no lock; what it raises becomes the finding that it could not be checked, and
stops no other. A condition that `health` knows already is taken from `operations/checks.py` (`exam.told`).
"""

from __future__ import annotations

from unstuck.operations.examinations import credentials, database, engine, jobs, postgres, sqlite
from unstuck.operations.examinations.exam import DoctorCheck, Exam

CHECKS: tuple[DoctorCheck[Exam], ...] = (
    *database.CHECKS,
    *postgres.CHECKS,
    *sqlite.CHECKS,
    *engine.CHECKS,
    *jobs.CHECKS,
    *credentials.CHECKS,
)

"""Dead letters: jobs that were never run, or ran out of tries, set before people with the reason.

A letter is about one run of a job, and is gone with it: whoever lets the job run again takes its letter away, and so
does time. What could not be settled or recovered waits in the quarantine and is shown among the letters (SET_ASIDE).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from unstuck.model.signing import SignatureProblem

#: Its tries are over (`dead_letter="exhausted"`): the job is FAILED or TIMEOUT.
EXHAUSTED: Final = "exhausted"
#: Its end cannot be written, or it cannot be taken from a lost worker: it is in quarantine, and RUNNING still.
SET_ASIDE: Final = "set_aside"

#: Of rows. Each is a label of `unstuck_dead_letters`.
REASONS: Final[tuple[str, ...]] = (*SignatureProblem, EXHAUSTED)
#: All that a list can be asked for.
LISTED: Final[tuple[str, ...]] = (*REASONS, SET_ASIDE)
#: What in the quarantine is about a run that does not end.
DUTIES: Final = ("settle", "recover", "overdue")

#: Of the notification that a letter makes, and of the alert about it.
TITLE: Final = "Dead letters: {reason}"
LINK: Final = "/platform/dead-letters"

_SENTENCES: Mapping[str, str] = {
    **{problem.value: problem.sentence for problem in SignatureProblem},
    EXHAUSTED: "it ended without success, and has no tries left",
    SET_ASIDE: "its end could not be written, or it could not be taken from a lost worker",
}


def sentence_of(reason: str) -> str:
    """Also of one that a newer version wrote."""
    return _SENTENCES.get(reason, "it was never run")


def is_about_signature(reason: str) -> bool:
    """Whether only another signature, other keys or another rule would let it run."""
    return reason in frozenset(SignatureProblem)

"""Why a job is not running: one code per gate of the claim, each with its rule and its sentence in one place.

Theory of operation. The store reads the `Facts` about one job in one statement (`facts.py`; on PostgreSQL it reads
the locks right after): the same rows, and for the gates of a route the very same view `unstuck_gates`, that a claim
looks at. `tests/store/test_runnable.py` holds the two to one answer. `explain` (`verdict.py`) asks every rule that
applies to the job's state. A rule that finds its gate shut says so in a sentence: since when, until when, who must
act, and the command to type. A QUEUED job that no gate shuts out is *runnable*: a claim that looked at it first would
return it (after an ingest, which gives each target its head). "All slots are busy" and "others go first" are details
of runnable (`runnable.py`), not gates. What a person must do stands before what passes by itself.

A new gate: its code in `codes.py`, its rule in the file of its noun, its place in the table of `verdict.py`, what it
looks at in `facts.py` and in the store's read of it; in SQL the views `unstuck_gates` and `unstuck_gates_in_use`, and
on PostgreSQL the short cut of `claim.postgres.sql`, which asks no gate where nothing is paused or blacklisted. Then
`python docs/draw_why.py` draws docs/why.md from RULES.
"""

from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import Facts
from unstuck.model.why.locks import session_named
from unstuck.model.why.remedies import (
    how_to_decide,
    how_to_raise,
    how_to_renew,
    how_to_send,
    how_to_try_again,
    of_tenant,
)
from unstuck.model.why.rule import Reason, Rule, Why
from unstuck.model.why.verdict import RULES, explain
from unstuck.model.why.waits import what_then
from unstuck.model.why.words import lasting

__all__ = [
    "RULES",
    "Actor",
    "Code",
    "Facts",
    "Reason",
    "Rule",
    "Why",
    "explain",
    "how_to_decide",
    "how_to_raise",
    "how_to_renew",
    "how_to_send",
    "how_to_try_again",
    "lasting",
    "of_tenant",
    "session_named",
    "what_then",
]

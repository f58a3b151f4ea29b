"""Control: what people ask of a job. Safe against a claim that runs at the same instant.

Theory of operation. A verb moves a job at rest once it holds its jobs row and, if the job is QUEUED, has deleted
its ready row or its timer: a claim needs that same row, so only one of them gets it. A running job is asked by a
write to its running row, which every settle reads under the same lock. Locks are taken in one order everywhere
(`store/lock_order.py`), so a verb that finds the job elsewhere than it looked ends its transaction and looks AGAIN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from unstuck.model.errors import ErrorType, IllegalMove, NotBlocking
from unstuck.model.job import AttemptRef, JobRecord
from unstuck.model.lifecycle import EVENT_OF, MOVES, EventKind, JobState, Move, RequestKind, stronger, target_of
from unstuck.model.payload import check_text, clean_text
from unstuck.model.settlement import INTERRUPTED_BY_USER, ErrorInfo, cancelled
from unstuck.model.target import FIRST, Turn, place_of, turn_after
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children, waits
from unstuck.store.guard import breaker
from unstuck.store.life.changes import MAX_MESSAGE, Changes, cleaned, done_of, moment, rest_of
from unstuck.store.order.line import end_stays, lock
from unstuck.store.order.name_ids import NameIds
from unstuck.store.order.targets import freed, take_turn
from unstuck.store.port import Verdict
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import job_of, span


class Again:
    """The job moved while we looked: nothing was written, look again."""


AGAIN: Final = Again()
Step = Callable[[Transaction], JobRecord | Again]

_REQUEST_OF = {Move.CANCEL: RequestKind.CANCEL, Move.INTERRUPT: RequestKind.INTERRUPT}


class Control:
    """One person's verb on one job, inside one transaction."""

    def __init__(self, name_ids: NameIds, tenant: str, uid: str, by: str, bulk: int | None = None) -> None:
        """`bulk`: the number of the bulk that this is part of, for the history."""
        self._name_ids = name_ids
        self._tenant = tenant
        self._uid = uid
        self._by = clean_text(by, 200)
        self._bulk = bulk

    # --- cancel, interrupt ---------------------------------------------------------------------------------------

    def stop(self, t: Transaction, move: Move, reason: str | None) -> JobRecord | Again:
        """Ask it if it runs, else end or pause it here."""
        row = self._look(t)
        if row["state"] == JobState.RUNNING:
            return self._ask(t, row, _REQUEST_OF[move], reason)
        target_of(self._uid, JobState(row["state"]), move)
        row = self._lock(t, row)
        state = JobState(row["state"])
        if state is JobState.RUNNING:
            return AGAIN
        target = target_of(self._uid, state, move)
        if state is JobState.QUEUED and not self._take_from_queue(t, row):
            return AGAIN
        if state is JobState.QUEUED:
            end_stays(t, [(row["expires_at"], row["number"])])
        if state is JobState.PENDING:
            t.run("forget_dependencies", job=row["number"])
        if state is JobState.WAITING:
            waits.abandon(t, row["number"], row["run"])
        self._stop_at_rest(t, row, move, target, reason)
        return self._record(t)

    def _ask(self, t: Transaction, row: Row, kind: RequestKind, reason: str | None) -> JobRecord | Again:
        running = t.one("lock_running", job=row["number"])
        if running is None:
            return AGAIN
        request(t, running, kind, reason, self._by, self._bulk)
        return self._record(t)

    def _stop_at_rest(self, t: Transaction, row: Row, move: Move, target: JobState, reason: str | None) -> None:
        changes, now = Changes(), moment(t)
        error_type, error_message = cleaned(self._error(move, reason))
        told = clean_text(reason, MAX_MESSAGE) if reason else None
        self._tell(
            changes, row, move, now, {"reason": told, "error_type": error_type, "error_message": error_message}
        )
        if target.is_final:
            if row["state"] != JobState.QUEUED:
                changes.rests.append(rest_of(row, JobState.QUEUED))  # of an ended job only done says the state
            changes.ends.append(
                done_of(row["number"], row, target, now, error_type=error_type, error_message=error_message)
            )
        else:
            changes.rests.append(rest_of(row, target, error_type=error_type, error_message=error_message))
        self._pass_turn(changes, t, row, target, now)
        changes.write(t)
        children.left(t, changes.ends)

    def _error(self, move: Move, reason: str | None) -> ErrorInfo:
        if move is Move.CANCEL:
            return cancelled(self._by, reason)
        return ErrorInfo(ErrorType.INTERRUPTED, INTERRUPTED_BY_USER)

    # --- resume, resolve, run_now ----------------------------------------------------------------------------------

    def resume(self, t: Transaction, from_start: bool) -> JobRecord | Again:
        """A new run, clean: no old error, request or count; at its old age."""
        row = self._locked(t)
        target_of(self._uid, JobState(row["state"]), Move.RESUME)
        breaker.check(t, row["tenant"], row["workflow"])
        changes, now = Changes(), moment(t)
        self._shelve(t, row)
        waits.begin_run(t, row, row["run"] + 1)
        stay = self._name_ids.policy(t, row["policy"]).expires_after
        expires_at = None if stay is None else now + span(stay)
        self._tell(changes, row, Move.RESUME, now, {"from_start": from_start or None}, run=row["run"] + 1)
        rest = rest_of(row, JobState.QUEUED, run=row["run"] + 1, available_at=now, expires_at=expires_at)
        changes.rests.append({**rest, "failures": 0, "losses": 0, "suspects": 0, "alone": 0})
        t.run("forget_appointment", job=row["number"])
        if row["is_blocker"]:
            t.run("unblock_target", target=row["target_number"], job=row["number"])
            changes.news.append(freed(row["number"], self._by))
        self._queue(changes, row, now, expires_at)
        changes.write(t)
        return self._record(t)

    def resolve(self, t: Transaction, result: str) -> JobRecord | Again:
        """A person's result: a run that ends at once."""
        check_text(result, "the result")
        row = self._locked(t)
        target_of(self._uid, JobState(row["state"]), Move.RESOLVE)
        changes, now, run = Changes(), moment(t), row["run"] + 1
        self._shelve(t, row)
        self._tell(changes, row, Move.RESOLVE, now, {}, run=run)
        changes.rests.append(rest_of(row, JobState.QUEUED, run=run))
        changes.ends.append(done_of(row["number"], row, JobState.COMPLETED, now, run=run, result=result))
        self._pass_turn(changes, t, row, JobState.COMPLETED, now)
        changes.write(t)
        return self._record(t)

    def run_now(self, t: Transaction) -> JobRecord | Again:
        """Due now instead of later; nothing to do for a job that is due already."""
        row = self._locked(t)
        state = JobState(row["state"])
        if state is not JobState.QUEUED:
            raise IllegalMove(self._uid, state, "hurry", MOVES[state])
        breaker.check(t, row["tenant"], row["workflow"])
        if not self._take_timer(t, row):
            return self._record(t)
        changes, now = Changes(), moment(t)
        end_stays(t, [(row["expires_at"], row["number"])])
        self._tell(changes, row, EventKind.HURRIED, now, {})
        stay = self._name_ids.policy(t, row["policy"]).expires_after
        expires_at = None if stay is None else now + span(stay)
        keep = {"error_type": row["error_type"], "error_message": row["error_message"]}
        changes.rests.append(rest_of(row, state, available_at=now, expires_at=expires_at, **keep))
        t.run("forget_appointment", job=row["number"])
        self._queue(changes, row, now, expires_at)
        changes.write(t)
        return self._record(t)

    # --- reprioritise ---------------------------------------------------------------------------------------------

    def reprioritise(self, t: Transaction, priority: int) -> JobRecord | Again:
        """Another place in the queue, wherever it waits; nothing to do for a job that has this priority already."""
        row = self._locked(t)
        state = JobState(row["state"])
        if state is JobState.RUNNING or state.is_final:
            raise IllegalMove(self._uid, state, "reprioritise", MOVES[state])
        if row["priority"] == priority:
            return self._record(t)
        changes = Changes()
        if state is JobState.QUEUED and not self._move_in_queue(changes, t, row, priority):
            return AGAIN
        self._tell(changes, row, EventKind.REPRIORITISED, moment(t), {"priority": priority, "was": row["priority"]})
        keep = {name: row[name] for name in ("expires_at", "error_type", "error_message")}
        changes.rests.append(rest_of(row, state, **keep))
        t.run("reprioritise", job=row["number"], priority=priority)
        changes.write(t)
        return self._record(t)

    def _move_in_queue(self, changes: Changes, t: Transaction, row: Row, priority: int) -> bool:
        """Out of the place that its old priority gave it, and into its new one. The head of a target that has begun,
        or comes back, keeps its turn; a fresh one steps back into the line, and whoever is first there goes."""
        job, target = row["number"], row["target_number"]
        if timer := t.one("take_whole_timer", due_at=row["available_at"], job=job):
            changes.timers.append(dict(timer))
            return True
        place = {"target": target, "place": place_of(priority), "job": job, "route": row["route"]}
        if target is not None and t.run("take_line", target=target, place=FIRST, first=FIRST, job=job) == 1:
            changes.line.append({**place, "place": FIRST})
            return True
        if target is not None and self._take_line(t, row):
            changes.line.append(place)
            # As of any newcomer: an unclaimed head of lower priority must yield.
            changes.inbox.append({"target": target, "job": None})
            return True
        if t.run("take_ready", route=row["route"], rank=row["rank"], job=job) != 1:
            return False
        (head,) = t.all("ready_heads", targets=[target]) if row["is_head"] else [None]
        if head is None or head["head_place"] <= FIRST:
            changes.ready.append(job)
        else:
            changes.passes.append({"target": target, "job": job})
            changes.line.append(place)
            changes.touched.add(target)
        return True

    # --- skip -----------------------------------------------------------------------------------------------------

    def skip(self, t: Transaction) -> JobRecord | Again:
        """The target moves on; the job stays what it is."""
        row = self._locked(t)
        if not row["is_blocker"]:
            raise NotBlocking(self._uid, row["target"])
        changes, now = Changes(), moment(t)
        self._tell(changes, row, EventKind.SKIPPED, now, {"target": row["target"]})
        if JobState(row["state"]).is_final:
            t.run("count_event_of_done", job=row["number"])
        else:
            keep = {"error_type": row["error_type"], "error_message": row["error_message"]}
            changes.rests.append(rest_of(row, JobState(row["state"]), expires_at=row["expires_at"], **keep))
        take_turn(changes, row["target_number"], row["number"], Turn.PASS, now, was_blocker=True, by=self._by)
        changes.write(t)
        return self._record(t)

    # --- steps ----------------------------------------------------------------------------------------------------

    def _look(self, t: Transaction) -> Row:
        return job_row(t, self._tenant, self._uid)

    def _lock(self, t: Transaction, row: Row) -> Row:
        """Look again under the locks: the first look may be as old as the wait was long."""
        lock(t, [row["target_number"]])
        t.one("lock_job", job=row["number"])
        return self._look(t)

    def _locked(self, t: Transaction) -> Row:
        return self._lock(t, self._look(t))

    def _take_timer(self, t: Transaction, row: Row) -> bool:
        return t.run("take_timer", kind="start", due_at=row["available_at"], job=row["number"]) == 1

    def _take_from_queue(self, t: Transaction, row: Row) -> bool:
        """The timer first: a timer that fires at this instant moves it on, and the later looks find it there."""
        if self._take_timer(t, row):
            return True
        if row["target_number"] is not None and self._take_line(t, row):
            return True
        return t.run("take_ready", route=row["route"], rank=row["rank"], job=row["number"]) == 1

    def _take_line(self, t: Transaction, row: Row) -> bool:
        place = place_of(row["priority"])
        return t.run("take_line", target=row["target_number"], place=place, first=FIRST, job=row["number"]) == 1

    def _queue(self, changes: Changes, row: Row, now: int, expires_at: int | None) -> None:
        """Due now; on a target whose turn is its own before everybody else, else at its own place in the line: there
        the inbox tells of it, as of any newcomer, because an unclaimed head of lower priority must yield."""
        changes.queue(
            row["number"],
            now,
            now,
            expires_at,
            route=row["route"],
            target=row["target_number"],
            place=FIRST if row["is_head"] else place_of(row["priority"]),
            is_locked=bool(row["is_head"]),
        )

    def _pass_turn(self, changes: Changes, t: Transaction, row: Row, state: JobState, now: int) -> None:
        """What becomes of its target's turn, if it has it."""
        if row["is_head"]:
            policy = self._name_ids.policy(t, row["policy"])
            turn = turn_after(state, started=bool(row["started"]), policy=policy)
            take_turn(
                changes,
                row["target_number"],
                row["number"],
                turn,
                now,
                was_blocker=bool(row["is_blocker"]),
                by=self._by,
            )

    def _shelve(self, t: Transaction, row: Row) -> None:
        if JobState(row["state"]).is_final:
            t.run("shelve_run", job=row["number"])
            t.run("drop_done", job=row["number"])

    def _tell(
        self,
        changes: Changes,
        row: Row,
        what: Move | EventKind,
        now: int,
        data: dict[str, Any],
        run: int | None = None,
    ) -> None:
        kind = EVENT_OF[what] if isinstance(what, Move) else what
        run = row["run"] if run is None else run
        facts = {"by": self._by, "bulk": self._bulk, **data}
        changes.tell(row["number"], row["event_count"] + 1, now, kind, run, row["token"], facts)

    def _record(self, t: Transaction) -> JobRecord:
        row = self._look(t)
        return job_of(row, self._name_ids.policy(t, row["policy"]))


def request(
    t: Transaction, running: Row, kind: RequestKind, reason: str | None, by: str, bulk: int | None = None
) -> None:
    """Write a request into a running row that is locked, unless one as strong is there already."""
    pending = RequestKind(running["request"]) if running["request"] else None
    if pending is kind or stronger(pending, kind) is not kind:
        return
    told = clean_text(reason, MAX_MESSAGE) if reason else None
    t.run("request", job=running["job"], kind=kind.value, reason=told, by=by)
    changes = Changes()
    facts = {"by": by, "bulk": bulk, "request": kind.value, "reason": told}
    changes.tell(
        running["job"],
        running["event_count"] + 1,
        moment(t),
        EventKind.REQUESTED,
        running["run"],
        running["token"],
        facts,
    )
    changes.write(t)


def ask(t: Transaction, ref: AttemptRef, kind: RequestKind, reason: str | None, by: str = "worker") -> Verdict:
    """The worker's own request, under its fence."""
    running = t.one("lock_running", job=ref.job)
    if running is None or (running["token"], running["claim"]) != (ref.token, ref.claim):
        return Verdict.FENCED
    request(t, running, kind, reason, by)
    return Verdict.DONE

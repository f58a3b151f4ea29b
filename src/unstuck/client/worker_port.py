"""RemoteWorkerPort: what a worker asks, asked of a server over HTTP. It needs no database and no driver.

Every verb is one request, and nothing is repeated here: those who ask know what a repeat means, and do so anyway
where a database was away. A request that may have reached the server and was not answered is `OutcomeUnknown`; one
that did not, `StoreUnavailable`; a server without a free hand, which takes nothing from anybody, `StoreLocked`. So is
what the server wants to hear later (Retry-After): it is not sent before, or until a few seconds are over. A key that
no longer works ends the worker's lease: its bodies are stopped at once, as if the database had said so.

What is asked of the worker (cancels, orders) comes by one long poll, on a thread of its own; `asked` and `orders`
tell what it heard last.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from unstuck.client.problems import ToldProblem
from unstuck.client.transport import Transport
from unstuck.client.wire import NoAnswerHeard, Sending
from unstuck.clock import Clock
from unstuck.model.errors import (
    InvalidInput,
    NotPermitted,
    OutcomeUnknown,
    StoreError,
    StoreLocked,
    StoreUnavailable,
    TooManyAttempts,
    Unauthenticated,
    UnstuckError,
)
from unstuck.model.job import AttemptRef, ClaimedJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import RequestKind
from unstuck.model.news import Publication
from unstuck.model.schedules import DeclaredSchedule
from unstuck.model.waits import Child, Journal, Spent
from unstuck.operations.routes import PREFIX
from unstuck.store.port import (
    Asked,
    AttemptOutput,
    Beat,
    ControlNews,
    Grant,
    NewChild,
    NewStep,
    NewWorker,
    QuarantineDuty,
    Report,
    Settled,
    Verdict,
    Wanted,
    WorkerOrder,
    wire,
)
from unstuck.telemetry import emit

T = TypeVar("T")
S = TypeVar("S")

#: Seconds for which the control poll waits at the server, and rests after one that failed.
CONTROL_WAIT = 25.0
_REST = 1.0
#: And the first one after that: what is asked may have changed, and nobody has told for a while.
_WAIT_AFTER_FAILURE = 1.0
#: Verbs that change nothing: a lost answer leaves nothing unknown.
_READS = frozenset({"", "probe", "now", "journal", "gather", "control", "payloads"})
#: Of what the server tells: it has no time for anybody; nothing that was asked is to blame, and nothing was done.
_NOT_NOW = frozenset({"TooManyRequests", "Overloaded", "NotReady"})
#: It cannot, or the link is too slow for this; the worker itself is in order, and nothing was done.
_NOT_THERE = frozenset({"TooSlow", "SchemaMismatch"})
#: Seconds for which a question is not sent that the server wants to hear later, at the longest: no server silences a
#: worker. An offer stands for a few seconds only; who asks for jobs has nothing to lose.
_LONGEST_REST = {"acknowledge": 0.5, "take": 10.0}
_LONGEST_REST_OF_OTHERS = 2.0
#: These come at a pace of their own, whatever the server wants: the lease depends on them, or who asked for a cancel.
_NEVER_LATER = frozenset({"", "register", "renew", "reconcile", "control", "fence_worker", "unregister_worker"})
#: Seconds for which payloads are taken whole after a server that does not know them apart, while others do.
WHOLE_FOR = 60.0
#: Bytes of reports in one request, before they are escaped; one that is larger is sent by itself.
_BODY = 1 << 20
_LARGE_REPORT = 256 << 10
#: So often may the link break under one of those before that is held against it.
_MOST_CUTS = 20
#: Bytes of a body of which a server takes a few at once only.
_LARGE_BODY = 2 << 20


class RemoteWorkerPort:
    """Of one incarnation. Safe to share between threads. `patience`: for so many seconds a server may say nothing."""

    def __init__(
        self, transport: Transport, address: str, incarnation: str, *, patience: float, clock: Clock
    ) -> None:
        self._transport = transport
        self._address = address
        self._incarnation = incarnation
        self._patience = patience
        self._clock = clock
        self._number = 0
        self._news = ControlNews()
        self._heard_at = clock.boot()
        #: Until when which questions are not sent.
        self._later: dict[str, float] = {}
        self._closed = threading.Event()
        self._control: threading.Thread | None = None
        self._protocol = wire.PROTOCOL
        self._whole_until = float("-inf")
        self._grant = Grant()
        #: Why its key works no more, once that is known for sure; and who is told of it.
        self._refusal: str | None = None
        self._large_reports = _LargeReports(self._settle)
        self._told: Callable[[], None] = lambda: None
        #: Whether the server holds signing keys, as it said last.
        self.verifies = False

    # --- one request ------------------------------------------------------------------------------------------------

    def hello(self) -> wire.HelloAnswer:
        """Whether this server would take us, and what it speaks."""
        found: wire.HelloAnswer = self._ask("", None, wire.HelloAnswer)
        if abs(found.protocol - wire.PROTOCOL) > 1:
            raise InvalidInput(
                f"{self._address} is unstuck {found.version} and speaks version {found.protocol} of the workers' "
                f"protocol, this worker version {wire.PROTOCOL}; they may be one apart: update the older one"
            )
        self.verifies = found.verifies
        return found

    def _ask(self, name: str, body: Any, answer: type[T] | Any, *, waiting: float = 0.0) -> T:
        method, sent = ("GET", None) if body is None else ("POST", wire.encoded(body))
        what = name if len(sent or b"") <= _LARGE_BODY else f"{name} with much"
        if (left := self._later.get(what, 0.0) - self._clock.boot()) > 0:
            raise StoreLocked(f"{self._address} wants to hear of {what} later; it is asked in {left:.1f} s")
        path = f"{PREFIX}{wire.PATH}/{name}" if name else PREFIX + wire.PATH
        heard = self._transport.send(Sending(method, path, sent, self._patience + waiting))
        if isinstance(heard, NoAnswerHeard):
            text = f"no answer from {self._address} ({heard.reason})"
            if heard.was_sent and name not in _READS:
                raise OutcomeUnknown(text) from _Unanswered()
            raise StoreUnavailable(text)
        if 200 <= heard.status < 300:
            try:
                found: T = wire.decoded(answer, heard.body, f"what {self._address} answered")
                return found
            except InvalidInput as unread:
                raise OutcomeUnknown(str(unread)) from None
        problem = ToldProblem.of(heard, self._address)
        self._note_later(what, problem)
        if not problem.code or problem.code == "ServerError":
            # A proxy before the server, or the server in trouble: who knows how far it came.
            raise StoreUnavailable(str(problem.error)) if name in _READS else OutcomeUnknown(str(problem.error))
        if problem.code in _NOT_NOW:
            raise StoreLocked(str(problem.error))
        if problem.code in _NOT_THERE:
            raise StoreUnavailable(str(problem.error))
        raise problem.error

    def _note_later(self, name: str, problem: ToldProblem) -> None:
        """Where nobody is served now; that one row is held, say, is no reason to keep others waiting."""
        is_everybodys = problem.status in (429, 503) and (not problem.code or problem.code in _NOT_NOW)
        if problem.retry_after and is_everybodys and name not in _NEVER_LATER:
            rest = min(problem.retry_after, _LONGEST_REST.get(name, _LONGEST_REST_OF_OTHERS))
            self._later[name] = self._clock.boot() + rest

    def _verb(self, name: str, /, **facts: Any) -> Any:
        verb = wire.verbs()[name]
        body = verb.body(worker=self._number, incarnation=self._incarnation, **facts)
        return self._let_in(lambda: self._ask(name, body, verb.answer))

    def _let_in(self, ask: Callable[[], T]) -> T:
        """What its key lets nobody ask any more is a store that is away: the next beat decides what that means."""
        try:
            return ask()
        except (Unauthenticated, NotPermitted, TooManyAttempts) as error:
            raise _away(error) from None

    @property
    def _self(self) -> dict[str, Any]:
        return {"worker": self._number, "incarnation": self._incarnation}

    # --- its life ---------------------------------------------------------------------------------------------------

    def register_worker(self, worker: NewWorker) -> WorkerRecord:
        """A key that is refused is told as it is: trying again would change nothing."""
        answer: wire.RegisterAnswer = self._ask(
            "register", wire.RegisterBody(wire.PROTOCOL, worker), wire.RegisterAnswer
        )
        self._number, self._heard_at = answer.worker.number, self._clock.boot()
        self._protocol, self._grant = answer.protocol, answer.grant
        if self._control is None:
            control = threading.Thread(target=self._listen, name="unstuck-control", daemon=True)
            control.start()
            self._control = control
        return answer.worker

    def renew(
        self, worker: int, lease: float, *, state: str = "active", info: Mapping[str, Any] | None = None
    ) -> Beat:
        if self._refusal is not None:
            return Beat(alive=False)
        verb = wire.verbs()["renew"]
        body = verb.body(**self._self, lease=lease, state=state, info=info and {**info, **self._polls})
        try:
            found: Beat = self._ask("renew", body, verb.answer)
            return found
        except (Unauthenticated, NotPermitted) as error:
            self._note_refusal(error)
            return Beat(alive=False)
        except TooManyAttempts as error:
            raise _away(error) from None

    @property
    def _polls(self) -> dict[str, Any]:
        return {"polled_ago": round(self._clock.boot() - self._heard_at, 1)}

    def when_refused(self, call: Callable[[], None]) -> None:
        """Called on a thread of ours, once its key works no more: the next beat ends the lease."""
        self._told = call

    def _note_refusal(self, error: UnstuckError) -> None:
        if self._refusal is None:
            self._refusal = str(error) or repr(error)
            emit("key_refused", level=logging.ERROR, server=self._address, error=self._refusal)

    def reconcile(
        self,
        worker: int,
        renewed: Beat,
        held: Sequence[AttemptRef],
        *,
        pending_claims: Sequence[str] = (),
        settling: Sequence[AttemptRef] = (),
        started: Mapping[int, datetime] | None = None,
    ) -> Beat:
        found: Beat = self._verb(
            "reconcile",
            renewed=renewed,
            held=held,
            pending_claims=pending_claims,
            settling=settling,
            started=started,
        )
        return found

    def beat(
        self,
        worker: int,
        lease: float,
        held: Sequence[AttemptRef],
        *,
        pending_claims: Sequence[str] = (),
        settling: Sequence[AttemptRef] = (),
        started: Mapping[int, datetime] | None = None,
        state: str = "active",
        info: Mapping[str, Any] | None = None,
    ) -> Beat:
        renewed = self.renew(worker, lease, state=state, info=info)
        if not renewed.alive:
            return renewed
        return self.reconcile(
            worker, renewed, held, pending_claims=pending_claims, settling=settling, started=started
        )

    def probe(self) -> None:
        self._verb("probe")

    def now(self) -> datetime:
        found: datetime = self._verb("now")
        return found

    def unregister_worker(self, worker: int) -> None:
        self._closed.set()
        self._verb("unregister_worker")

    def fence_worker(self, worker: int, reason: str) -> bool:
        return bool(self._verb("fence_worker", reason=reason))

    def notify(self, title: str, message: str, link: str, severity: str = "warning") -> bool:
        return bool(self._verb("notify", title=title, message=message, link=link, severity=severity))

    def close(self) -> None:
        self._closed.set()
        self._transport.close()

    # --- jobs -------------------------------------------------------------------------------------------------------

    @property
    def grant(self) -> Grant:
        return self._grant

    def register_workflows(
        self,
        workflows: Sequence[WorkflowRecord],
        *,
        worker: int | None = None,
        queues: Sequence[str] = (),
        app: str | None = None,
    ) -> frozenset[str]:
        told = app if self._protocol >= wire.DECLARES else None
        body = wire.WorkflowsBody(**self._self, workflows=tuple(workflows), queues=tuple(queues), app=told)
        answer: wire.WorkflowsAnswer = self._ask("workflows", body, wire.WorkflowsAnswer)
        return answer.held

    def declare_schedules(
        self, app: str, origin: str, code_version: str, declared: Sequence[DeclaredSchedule]
    ) -> list[str]:
        if self._protocol < wire.DECLARES:
            return [f"{self._address} is older than this worker, and takes no schedules from it"] if declared else []
        body = wire.DeclareBody(
            **self._self, app=app, origin=origin, code_version=code_version, declared=tuple(declared)
        )
        answer: wire.DeclareAnswer = self._ask("declare", body, wire.DeclareAnswer)
        return list(answer.refused)

    def take(self, worker: int, claim: str, wanted: Wanted, *, again: bool = False) -> list[ClaimedJob]:
        fetches = self._protocol >= wire.FETCHES and self._clock.boot() >= self._whole_until
        body = wire.TakeBody(**self._self, claim=claim, wanted=wanted, again=again, fetches=fetches)
        try:
            answer: wire.TakeAnswer = self._let_in(
                lambda: self._ask("take", body, wire.TakeAnswer, waiting=wanted.wait)
            )
        except InvalidInput:
            if fetches:  # of two servers behind one address one is older, while they are updated
                self._whole_until = self._clock.boot() + WHOLE_FOR
            raise
        return list(answer.jobs)

    def payloads(self, worker: int, refs: Sequence[AttemptRef]) -> list[str | None]:
        body = wire.PayloadsBody(**self._self, refs=tuple(refs[: wire.MOST_AT_ONCE]))
        answer: wire.PayloadsAnswer = self._let_in(lambda: self._ask("payloads", body, wire.PayloadsAnswer))
        return list(answer.payloads)

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]:
        body = wire.AcknowledgeBody(**self._self, claim=claim, offers=tuple(offers))
        answer: wire.AcknowledgeAnswer = self._let_in(lambda: self._ask("acknowledge", body, wire.AcknowledgeAnswer))
        return list(answer.verdicts)

    def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
        """In requests of a bounded size, one after the other; the first that fails ends it. What is large is BUSY
        until it was sent, so that nothing else waits for it."""
        large = [report for report in reports if _size_of_report(report) > _LARGE_REPORT]
        others = [report for report in reports if _size_of_report(report) <= _LARGE_REPORT] if large else reports
        answers = [answer for some in _portions(others, _size_of_report) for answer in self._settle(some)]
        return answers + [self._large_reports.settled(report) for report in large]

    def _settle(self, reports: Sequence[Report]) -> Sequence[Settled]:
        body = wire.SettleBody(**self._self, reports=tuple(map(wire.ReportWire.of, reports)))
        try:
            answer: wire.SettleAnswer = self._ask("settle", body, wire.SettleAnswer)
        except StoreError:
            raise
        except InvalidInput as error:
            # One of them is to blame: as a database says it that refuses one row.
            if len(reports) == 1:
                return [Settled(reports[0].ref, Verdict.BUSY, problem=str(error))]
            return [answer for report in reports for answer in self._settle([report])]
        except UnstuckError as error:
            # Whoever is refused, or says too much at once, must not settle the others by it.
            raise _away(error) from None
        return answer.settled

    def lift_body_mark(self, worker: int, job: int) -> bool:
        return bool(self._verb("lift_body_mark", job=job))

    def quarantine(self, duty: QuarantineDuty, errors: Mapping[int, str], by: str) -> frozenset[int]:
        """Which jobs are set aside, workers at a distance do not say; the beat tells what cannot be written."""
        return frozenset(errors)

    def leave_quarantine(self, duty: QuarantineDuty, item: int) -> None:
        """Nothing of ours is there."""

    # --- running attempts -------------------------------------------------------------------------------------------

    def ask(self, ref: AttemptRef, kind: RequestKind, reason: str | None = None) -> Verdict:
        found: Verdict = self._verb("ask", ref=ref, kind=kind, reason=reason)
        return found

    def keep_output(self, outputs: Sequence[AttemptOutput]) -> list[Verdict]:
        return [verdict for some in _portions(outputs, _size_of_output) for verdict in self._keep_output(some)]

    def _keep_output(self, outputs: Sequence[AttemptOutput]) -> Sequence[Verdict]:
        try:
            kept: Sequence[Verdict] = self._verb("keep_output", outputs=outputs)
            return kept
        except InvalidInput:
            if len(outputs) == 1:
                return [Verdict.BUSY]
            return [verdict for said in outputs for verdict in self._keep_output([said])]

    def journal(self, ref: AttemptRef, after: int = 0) -> Journal | None:
        found: Journal | None = self._verb("journal", ref=ref, after=after)
        return found

    def record_steps(self, steps: Sequence[NewStep]) -> list[Verdict]:
        portions = _portions(steps, _size_of_step)
        return [verdict for some in portions for verdict in self._verb("record_steps", steps=some)]

    def spend(self, ref: AttemptRef, serial: int, amounts: Mapping[str, float]) -> Spent | None:
        found: Spent | None = self._verb("spend", ref=ref, serial=serial, amounts=amounts)
        return found

    def keep_part(self, ref: AttemptRef, serial: int, name: str, value: str) -> Verdict:
        found: Verdict = self._verb("keep_part", ref=ref, serial=serial, name=name, value=value)
        return found

    def publish_from(self, ref: AttemptRef, place: int, given: Publication) -> Verdict:
        found: Verdict = self._verb("publish_from", ref=ref, place=place, given=given)
        return found

    def spawn(self, child: NewChild) -> Child | None:
        """That its key does not grant this child is told as it is: its handler would wait in vain."""
        verb = wire.verbs()["spawn"]
        body = verb.body(**self._self, child=child)
        try:
            found: Child | None = self._ask("spawn", body, verb.answer)
        except (Unauthenticated, TooManyAttempts) as error:
            raise _away(error) from None
        return found

    def gather(self, ref: AttemptRef, children: Sequence[str], release_target: bool = False) -> str | None:
        found: str | None = self._verb("gather", ref=ref, children=children, release_target=release_target)
        return found

    # --- what is asked of it ----------------------------------------------------------------------------------------

    def asked(self, worker: int) -> list[Asked]:
        return list(self._latest().asked)

    def orders(self, worker: int) -> list[WorkerOrder]:
        return list(self._latest().orders)

    def answer_order(self, number: int, answer: str, *, refused: bool = False) -> None:
        self._verb("answer_order", number=number, answer=answer, refused=refused)

    def _latest(self) -> ControlNews:
        silent = self._clock.boot() - self._heard_at
        if silent > CONTROL_WAIT + 2 * self._patience:
            raise StoreUnavailable(f"{self._address} has not told for {silent:.0f} s what is asked of this worker")
        return self._news

    def _listen(self) -> None:
        seen, wait = "", CONTROL_WAIT
        while not self._closed.is_set():
            body = wire.ControlBody(**self._self, seen=seen, wait=wait)
            try:
                answer: wire.ControlAnswer = self._ask("control", body, wire.ControlAnswer, waiting=wait)
                wait = CONTROL_WAIT
            except (Unauthenticated, NotPermitted, TooManyAttempts):
                if self._is_refused():
                    self._told()
                    return
                wait = _WAIT_AFTER_FAILURE
                self._clock.wait(self._closed, _REST)
            except Exception:
                # The beat decides what that means, and the other roles say it.
                wait = _WAIT_AFTER_FAILURE
                self._clock.wait(self._closed, _REST)
            else:
                seen, self._news, self._heard_at = answer.seen, answer.news, self._clock.boot()

    def _is_refused(self) -> bool:
        """Asked once more: a server that cannot look the key up for a while ends its polls too. The other roles of a
        worker whose key was revoked soon use up what their address may try; no key that works is told so."""
        try:
            self.hello()
        except (Unauthenticated, NotPermitted, TooManyAttempts) as error:
            self._note_refusal(error)
            return True
        except Exception:
            return False
        return False


class _Unanswered(Exception):
    """The link broke, or nobody answered in time."""


class _LargeReports:
    """Each is sent on a thread of its own, one after the other. What became of it hears who asks again. That a link
    breaks says nothing about a report, unless it does so again and again."""

    def __init__(self, settle: Callable[[Sequence[Report]], Sequence[Settled]]) -> None:
        self._settle = settle
        self._lock = threading.Lock()
        self._sent: AttemptRef | None = None
        self._answers: dict[AttemptRef, Settled | Exception] = {}
        self._cuts: Counter[AttemptRef] = Counter()

    def settled(self, report: Report) -> Settled:
        with self._lock:
            answer = self._answers.pop(report.ref, None)
            if answer is None and self._sent is None:
                threading.Thread(target=self._send, args=(report,), name="unstuck-large", daemon=True).start()
                self._sent = report.ref
        if isinstance(answer, Exception):
            raise answer
        return answer or Settled(report.ref, Verdict.BUSY)

    def _send(self, report: Report) -> None:
        answer: Settled | Exception
        try:
            (answer,) = self._settle([report])
        except Exception as error:
            answer = error
        with self._lock:
            if isinstance(answer, Exception) and isinstance(answer.__cause__, _Unanswered):
                self._cuts[report.ref] += 1
                if self._cuts[report.ref] <= _MOST_CUTS:
                    answer = StoreLocked(str(answer))
            else:
                del self._cuts[report.ref]
            self._answers[report.ref], self._sent = answer, None


def _away(error: UnstuckError) -> StoreUnavailable:
    """As a database that does not let us in: nothing was written, and the next beat decides."""
    return StoreUnavailable(f"the server refuses: {error}")


def _portions(items: Sequence[S], size: Callable[[S], int]) -> list[list[S]]:
    """What fits into one body each."""
    portions: list[list[S]] = []
    room = 0
    for item in items:
        if size(item) > room or len(portions[-1]) >= wire.MOST_AT_ONCE:
            portions.append([])
            room = _BODY
        portions[-1].append(item)
        room -= size(item)
    return portions


def _size_of_report(report: Report) -> int:
    return 500 + len(getattr(report.outcome, "result", None) or "") + len(report.output or "")


def _size_of_output(said: AttemptOutput) -> int:
    return 200 + len(said.output or "") + len(said.progress or "")


def _size_of_step(step: NewStep) -> int:
    return 200 + len(step.result)

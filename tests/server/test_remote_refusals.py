"""Workers at a distance whose server has no time, no database or no patience: what each verb tells its role then.

A role goes on where it is told that the store is away (`StoreError`); by STORE_AWAY the settler knows that nothing of
what it asked is to blame."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.server.conftest import Site
from tests.server.test_remote_workers import FarWorker, enter_at
from tests.support.builders import a_job, chance, record, submitted
from tests.support.cut_link import CutLink
from tests.support.eventually import eventually
from tests.support.refusing_link import LinkAnswer, RefusingLink
from tests.support.threads import no_more_threads
from unstuck.client.worker_port import WHOLE_FOR
from unstuck.clock import Clock, FakeClock, MachineClock, boot
from unstuck.model import errors
from unstuck.model.errors import InvalidInput, NotPermitted, SchemaMismatch
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import FINAL, JobState, RequestKind
from unstuck.model.news import Publication
from unstuck.model.offers import claim_id, left_out
from unstuck.model.settlement import Returned
from unstuck.server.problems import HttpProblem
from unstuck.store.port import AttemptOutput, Beat, NewChild, NewStep, Report, Verdict, wire
from unstuck.store.sql_store import SqlStore
from unstuck.worker.ledger import Ledger
from unstuck.worker.settle import Settler
from unstuck.worker.write_retries import STORE_AWAY

#: The server as such has no time; it heard nothing of what was asked.
NOT_NOW = {
    code: LinkAnswer.of(HttpProblem(code, "come again")) for code in ("TooManyRequests", "Overloaded", "NotReady")
}
#: It may have been done, or was not; nothing that was asked is known to be wrong.
AWAY = {
    "TooSlow": LinkAnswer.of(HttpProblem("TooSlow", "come again")),
    "ServerError": LinkAnswer.of(RuntimeError("a defect")),
    **{
        kind.__name__: LinkAnswer.of(kind("come again"))
        for kind in (
            errors.StoreUnavailable, errors.StoreLocked, errors.OutcomeUnknown, errors.SchemaMismatch,
        )
    },
    "TooManyAttempts": LinkAnswer.of(errors.TooManyAttempts(3.0)),
    "Unauthenticated": LinkAnswer.of(errors.Unauthenticated()),
    "NotPermitted": LinkAnswer.of(NotPermitted("there is no worker 7")),
    **{
        f"a proxy's {status}": LinkAnswer(status, "text/html", b"<h1>no</h1>")
        for status in (301, 404, 413, 429, 500, 502, 503, 504)
    },
    "a page with 200": LinkAnswer(200, "text/html", b"<h1>Welcome to nginx!</h1>"),
}  # fmt: skip
#: What was asked is to blame.
INVALID = LinkAnswer.of(InvalidInput("no worker of ours says that"))

Call = Callable[[FarWorker, AttemptRef], Any]
VERBS: dict[str, Call] = {
    "take": lambda far, ref: far.port.take(far.number, claim_id(far.number, chance.nonce()), far.wanted()),
    "acknowledge": lambda far, ref: far.port.acknowledge(far.number, ref.claim, [ref]),
    "payloads": lambda far, ref: far.port.payloads(far.number, [ref]),
    "settle": lambda far, ref: far.port.settle(far.number, [Report(ref, Returned("1"), 5)]),
    "renew": lambda far, ref: far.port.renew(far.number, 60.0),
    "reconcile": lambda far, ref: far.port.reconcile(far.number, Beat(alive=True), [ref]),
    "probe": lambda far, ref: far.port.probe(),
    "now": lambda far, ref: far.port.now(),
    "ask": lambda far, ref: far.port.ask(ref, RequestKind.TIMEOUT),
    "keep_output": lambda far, ref: far.port.keep_output([AttemptOutput(ref, "hello")]),
    "journal": lambda far, ref: far.port.journal(ref),
    "record_steps": lambda far, ref: far.port.record_steps([NewStep(ref, "s", 1, "1", 3)]),
    "spend": lambda far, ref: far.port.spend(ref, 1, {"tokens": 1.0}),
    "keep_part": lambda far, ref: far.port.keep_part(ref, 1, "p", "1"),
    "publish_from": lambda far, ref: far.port.publish_from(ref, 1, Publication("told", "{}")),
    "spawn": lambda far, ref: far.port.spawn(NewChild(ref, "c", 1, a_job())),
    "gather": lambda far, ref: far.port.gather(ref, []),
    "lift_body_mark": lambda far, ref: far.port.lift_body_mark(far.number, ref.job),
    "answer_order": lambda far, ref: far.port.answer_order(1, "done"),
    "fence_worker": lambda far, ref: far.port.fence_worker(far.number, "it ended itself"),
    "notify": lambda far, ref: far.port.notify("t", "m", "/"),
    "unregister_worker": lambda far, ref: far.port.unregister_worker(far.number),
}


class StillClock(FakeClock):
    """Waits are real, and move it no further."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


@contextmanager
def entered(
    site: Site, store: SqlStore, answer: Callable[[str], LinkAnswer | None], clock: Clock | None = None
) -> Iterator[FarWorker]:
    with RefusingLink(site.url, answer) as link:
        worker = enter_at(replace(site, url=link.url), store, "host", queues=["default"], clock=clock)
        yield worker
        worker.port.close()


def told_by(call: Call, far: FarWorker, ref: AttemptRef) -> Exception:
    with pytest.raises(Exception) as found:
        call(far, ref)
    return found.value


def test_a_role_that_asks_in_vain_is_told_that_the_store_is_away(site: Site, store: SqlStore) -> None:
    """Whatever it asked, and whatever it was answered; it is the same worker when there is an answer again."""
    submitted(store)
    instead: dict[str, LinkAnswer] = {}
    wrong: dict[tuple[str, str], Exception] = {}
    with entered(site, store, instead.get) as far:
        (given,) = far.take()
        for (name, answer), (verb, call) in itertools.product((NOT_NOW | AWAY).items(), VERBS.items()):
            if verb == "renew" and name in ("Unauthenticated", "NotPermitted"):
                continue  # these end its lease
            instead[verb] = answer._replace(retry_after=None)
            error = told_by(call, far, given.ref)
            if not isinstance(error, STORE_AWAY) or isinstance(error, SchemaMismatch):
                wrong[name, verb] = error
            del instead[verb]
        # A child that is not granted is refused to its handler.
        assert isinstance(wrong.pop(("NotPermitted", "spawn")), NotPermitted)
        assert wrong == {}
        assert far.settle(given.ref) is Verdict.DONE


#: Of these nothing waits: the lease and who asked for a cancel would.
AT_THEIR_OWN_PACE = {"renew", "reconcile", "fence_worker", "unregister_worker"}
#: Seconds for which others are silent at the longest, whatever they are told.
LONGEST = dict.fromkeys(VERBS.keys() - AT_THEIR_OWN_PACE, 2.0) | {"take": 10.0, "acknowledge": 0.5}
LATER = {
    **NOT_NOW,
    **{f"a proxy's {status}": LinkAnswer(status, "text/html", b"<h1>no</h1>") for status in (429, 503)},
}


@pytest.mark.parametrize(("told_for", "waits"), [("1", 1.0), ("86400", 86400.0), ("0", 0.0), ("soon", 0.0)])
def test_a_question_is_not_asked_again_before_the_server_wants_to_hear_it_and_never_much_later(
    site: Site, store: SqlStore, told_for: str, waits: float
) -> None:
    """Retry-After counts for the question that was refused: another one is asked at once."""
    submitted(store)
    instead: dict[str, LinkAnswer] = {}
    asked: list[str] = []

    def answer(verb: str) -> LinkAnswer | None:
        asked.append(verb)
        return instead.get(verb)

    clock = StillClock()
    wrong: dict[tuple[str, str], tuple[int, ...]] = {}
    with entered(site, store, answer, clock) as far:
        (given,) = far.take()
        for (name, refusal), (verb, call) in itertools.product(LATER.items(), VERBS.items()):
            clock.advance(60.0)
            instead[verb] = refusal._replace(retry_after=told_for)
            counts = [asked.count(verb)]
            for ahead in (0.0, 0.0, rest - 0.2, 0.2) if (rest := min(waits, LONGEST.get(verb, 0.0))) else (0.0,) * 4:
                clock.advance(ahead)
                assert isinstance(told_by(call, far, given.ref), STORE_AWAY)
                counts.append(asked.count(verb))
            del instead[verb]
            if [each - counts[0] for each in counts[1:]] != ([1, 1, 1, 2] if rest else [1, 2, 3, 4]):
                wrong[name, verb] = tuple(counts)
        assert wrong == {}
        clock.advance(60.0)
        assert far.settle(given.ref) is Verdict.DONE


def test_whatever_a_server_wants_to_hear_later_the_poll_for_cancels_is_asked_again_within_2_seconds(
    site: Site, store: SqlStore
) -> None:
    polls: list[float] = []

    def answer(verb: str) -> LinkAnswer | None:
        if verb != "control":
            return None
        polls.append(boot())
        return NOT_NOW["Overloaded"]._replace(retry_after="86400")

    with entered(site, store, answer):
        eventually(lambda: len(polls) >= 4)
    assert max(later - sooner for sooner, later in itertools.pairwise(polls[:4])) < 2.0


def test_what_the_server_refuses_of_one_keeps_no_other_from_its_end(site: Site, store: SqlStore) -> None:
    """A worker of the next version may say what this server cannot read; it is told of each by itself."""
    ids = [submitted(store).id for _ in range(2)]
    asked: list[str] = []

    def refuse_the_first(verb: str) -> LinkAnswer | None:
        """With the other one, and alone."""
        asked.append(verb)
        return INVALID if verb in ("settle", "keep_output") and asked.count(verb) <= 2 else None

    with entered(site, store, refuse_the_first) as far:
        given = far.take()
        outputs = [AttemptOutput(job.ref, "hello") for job in given]
        assert far.port.keep_output(outputs) == [Verdict.BUSY, Verdict.DONE]
        settled = far.port.settle(far.number, [Report(job.ref, Returned("1"), 5) for job in given])
    assert [answer.verdict for answer in settled] == [Verdict.BUSY, Verdict.DONE]
    assert "no worker of ours says that" in settled[0].problem
    states = {job.id: record(store, job.id).state for job in given}
    assert list(states.values()) == [JobState.RUNNING, JobState.COMPLETED]
    assert set(states) == set(ids)


def test_of_two_servers_behind_one_address_one_may_be_older(site: Site, store: SqlStore) -> None:
    """It does not know that payloads can come apart: what it refuses once is asked as it was before."""
    submitted(store, payload="x" * 2 * wire.MOST_PAYLOADS)
    older, clock = iter([INVALID]), StillClock()
    with entered(site, store, lambda verb: next(older, None) if verb == "take" else None, clock) as far:
        with pytest.raises(InvalidInput):
            far.take()
        claim = claim_id(far.number, chance.nonce())
        (given,) = far.port.take(far.number, claim, far.wanted())
        assert len(given.payload) == 2 * wire.MOST_PAYLOADS
        # Once it is updated too, large payloads come apart again.
        clock.advance(WHOLE_FOR)
        submitted(store, payload="y" * 2 * wire.MOST_PAYLOADS)
        claim = claim_id(far.number, chance.nonce())
        (given,) = far.port.take(far.number, claim, far.wanted())
        assert given.payload == left_out("y" * 2 * wire.MOST_PAYLOADS)


def test_a_large_result_is_sent_by_itself_and_nothing_waits_for_it(site: Site, store: SqlStore) -> None:
    submitted(store)
    submitted(store)
    with entered(site, store, lambda verb: None) as far:
        large, small = far.take()
        reports = [Report(large.ref, Returned(f'"{"x" * (1 << 20)}"'), 5), Report(small.ref, Returned("1"), 5)]
        verdicts = {settled.ref: settled.verdict for settled in far.port.settle(far.number, reports)}
        assert verdicts == {large.ref: Verdict.BUSY, small.ref: Verdict.DONE}

        def sent() -> None:
            (settled,) = far.port.settle(far.number, reports[:1])
            assert settled.verdict is Verdict.DONE

        eventually(sent)
    assert record(store, large.id).state is JobState.COMPLETED


def test_a_large_result_is_sent_once_there_is_a_thread_for_it(site: Site, store: SqlStore) -> None:
    job = submitted(store)
    with entered(site, store, lambda verb: None) as far:
        (given,) = far.take()
        report = Report(given.ref, Returned(f'"{"x" * (1 << 20)}"'), 5)
        with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
            far.port.settle(far.number, [report])
        eventually(lambda: far.port.settle(far.number, [report])[0].verdict is Verdict.DONE)
    assert record(store, job.id).state is JobState.COMPLETED


def test_a_large_result_lands_although_its_link_is_cut_again_and_again(site: Site, store: SqlStore) -> None:
    """Three times is no reason to give it up: what an outage costs is time."""
    job = submitted(store)
    cuts = 0

    def cut(piece: bytes) -> None:
        nonlocal cuts
        if cuts < 6 and len(piece) == 64 << 10:
            cuts += 1
            raise ConnectionAbortedError

    with CutLink(int(site.url.rpartition(":")[2]), asking=cut) as link:
        far = enter_at(replace(site, url=link.url), store, "host", queues=["default"])
        (given,) = far.take()
        settler = Settler(far.port, far.number, Ledger(), MachineClock(), settled=lambda _: None)
        settler.report([Report(given.ref, Returned(f'"{"x" * (2 << 20)}"'), 5)])

        def landed() -> None:
            settler.tick()
            assert record(store, job.id).state in FINAL

        eventually(landed, timeout=60)
        far.port.close()
    assert (cuts, record(store, job.id).state) == (6, JobState.COMPLETED)


def test_a_worker_that_only_hears_that_it_tried_too_often_knows_that_its_key_is_refused(
    site: Site, store: SqlStore
) -> None:
    """No key that works is told so; its other roles may have used up every try before its poll was answered."""
    often = AWAY["TooManyAttempts"]
    with entered(site, store, {"": often, "control": often}.get) as far:
        eventually(lambda: not far.port.renew(far.number, 60.0).alive)


def test_a_server_two_versions_apart_is_refused_by_the_worker_with_both_versions(site: Site, store: SqlStore) -> None:
    hellos = {
        far: LinkAnswer(200, "application/json", wire.encoded(wire.HelloAnswer(wire.PROTOCOL + far, "9.9", False)))
        for far in (-1, 1, 2)
    }
    instead: dict[str, LinkAnswer] = {}
    with entered(site, store, instead.get) as worker:
        for apart in (-1, 1):
            instead[""] = hellos[apart]
            assert worker.port.hello().protocol == wire.PROTOCOL + apart
        instead[""] = hellos[2]
        with pytest.raises(
            InvalidInput, match=f"version {wire.PROTOCOL + 2} .* this worker version {wire.PROTOCOL};"
        ):
            worker.port.hello()

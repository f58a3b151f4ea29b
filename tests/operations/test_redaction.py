"""What a workflow redacts is seen by admins alone, by every operation, on both databases."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.operations.conftest import Ask
from tests.support.builders import a_job, begin, chance, submitted
from tests.support.parking import Stage
from unstuck import App
from unstuck.model.alerts import finding
from unstuck.model.errors import NotPermitted
from unstuck.model.job import ClaimedJob, WorkflowRecord
from unstuck.model.logs import LogRecord, frame
from unstuck.model.news import Publication
from unstuck.model.policy import Policy
from unstuck.model.redaction import REDACTED
from unstuck.model.settlement import Parked, Returned
from unstuck.model.waits import Wait, WaitKind
from unstuck.observe.stream import Stream
from unstuck.operations import approvals, bulks, events, hooks, jobs, schedules, targets, webhooks, workflows
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.table import INCLUDED, Caller, Operation, Role
from unstuck.store.guard import dead_letters
from unstuck.store.port import AttemptOutput, NewLetter, Share
from unstuck.store.sql_store import SqlStore
from unstuck.views import plain

CANARY = "4111-canary"
HIDDEN = {"card": CANARY, "customer": {"iban": CANARY, "name": "kim"}, "cards": [{"card": CANARY, "n": 1}]}
#: The path of its iban is another one.
ALSO = {"card": CANARY, "customer": {"iban": "shown"}}
BELOW = [Role.READER, Role.SUBMITTER, Role.OPERATOR]
ADMINS = [Role.TENANT_ADMIN, Role.PLATFORM_ADMIN]


def deploy(store: SqlStore, version: str = "v1", redact: tuple[str, ...] = ("card", "customer.iban")) -> None:
    app = App("sqlite:///nowhere.db", version=version)

    @app.workflow(name="pay", redact=redact)
    def pay(card: str, customer: dict[str, str], /, note: str = "", **more: Any) -> Any: ...

    store.register_workflows(app._registry.records())


def call() -> str:
    return json.dumps({"args": [CANARY, HIDDEN["customer"]], "kwargs": {"note": "n", "also": ALSO}})


class Paid:
    """A job that has left the canary wherever a job can leave anything."""

    def __init__(self, store: SqlStore, stage: Stage | None = None) -> None:
        deploy(store)
        self.stage = stage = stage or Stage(store)
        self.id = submitted(store, workflow="pay", payload=call(), target="t1").id
        attempt = self._claimed(store)
        self._leave(store, attempt)
        stage.park(attempt, Wait(WaitKind.EVENT, "event:paid#1", "paid"))
        store.signal("default", "paid", json.dumps(HIDDEN), "kim", job=self.id)
        stage.end(self._claimed(store), Parked(Wait(WaitKind.EVENT, "event:card#1", "card")))
        store.signal("default", "card", json.dumps(CANARY), "kim", job=self.id)
        last = self._claimed(store)
        stage.end(last, Returned(json.dumps(HIDDEN)))
        letter = NewLetter(last.ref.job, last.run, last.tenant, last.queue, "pay", "altered", "m", None)
        store._database.write(lambda t: dead_letters.add(t, [letter]))

    def _leave(self, store: SqlStore, attempt: ClaimedJob) -> None:
        stage = self.stage
        begin(store, stage.worker, attempt)
        stage.step(attempt, "fetch", json.dumps(HIDDEN))
        stage.step(attempt, "card", json.dumps(CANARY))
        stage.part(attempt, "page", json.dumps(HIDDEN), 1)
        stage.part(attempt, "card", json.dumps(CANARY), 2)
        store.publish_from(attempt.ref, 1, Publication("page", json.dumps(HIDDEN)))
        store.publish_from(attempt.ref, 2, Publication("card", json.dumps({"number": CANARY})))
        said = frame(LogRecord(store.now(), "info", "paid", {**HIDDEN, "n": 7}))
        store.keep_output([AttemptOutput(attempt.ref, output=f"hello\n{said}", progress=json.dumps(HIDDEN))])

    def _claimed(self, store: SqlStore) -> ClaimedJob:
        store.ingest()
        store.ingest()  # it was woken; now its target gets its head
        [route] = [front.route for front in store.open_routes()]
        [attempt] = store.claim(self.stage.worker.number, chance.nonce(), [Share(route, 1)])
        assert attempt.id == self.id
        return attempt


def told(answer: Any) -> str:
    """All that an answer says; of a stream all that is there."""
    if hasattr(answer, "look"):
        answer = [*Stream(answer, follow=False)]
    return json.dumps(plain(answer), default=str)


def asked(paid: Paid, bulk: int, caller: Caller) -> Iterator[tuple[Operation[Any, Any], str]]:
    """Every operation that an operator may ask too and that changes nothing, with what it tells of the job."""
    things = {"job": paid.id, "number": bulk, "target": "t1", "workflow": "pay", "name": "breaker_tenants"}
    things["schedule"] = "nightly"
    things["hook"] = things["webhook"] = "paid"
    for operation in OPERATIONS.values():
        allowed = INCLUDED[caller.role] & INCLUDED[Role.OPERATOR]
        if operation.entry.role not in allowed or operation.entry.effect == "change":
            continue
        words = {"after": "start"} if operation.name == "events.follow" else {}
        needed = [*inspect.signature(operation.function).parameters.values()][1:]
        given = [things[parameter.name] for parameter in needed if parameter.default is parameter.empty]
        yield operation, told(operation(caller, *given, **words))


#: Where the canary is, for those who may see it: the walk below would prove nothing where it never was.
TELL = {
    "jobs.list", "jobs.get", "jobs.wait", "jobs.attempts", "jobs.history", "jobs.logs", "jobs.follow_logs",
    "jobs.steps", "jobs.partials", "jobs.follow_partials", "jobs.waits", "bulks.list", "bulks.get", "audit.list",
    "events.list", "events.follow", "schedules.list", "schedules.get", "dead_letters.get", "dead_letters.export",
    "hooks.list", "hooks.get",
}  # fmt: skip


def test_no_operation_tells_anybody_but_admins_what_is_redacted(ask: Ask, store: SqlStore) -> None:
    paid = Paid(store)
    bulk = bulks.start(ask(), "cancel", argument=("card", CANARY)).number
    schedules.create(ask(), "nightly", "pay", every=60, args=[CANARY, {"iban": CANARY}], kwargs={"also": ALSO})
    hooks.create(ask(), "paid", "pay", arguments={"card": {"value": CANARY}, "customer": {"value": {"iban": CANARY}}})
    webhooks.create(ask(), "paid", "https://93.184.216.34/")
    webhooks.test(ask(), "paid")
    store.see_alerts("worker_silent", [finding("worker_silent", ("w",), "w", "it is gone", "/workers")])
    for role in ADMINS:
        telling = {operation.name for operation, text in asked(paid, bulk, ask(role=role)) if CANARY in text}
        assert telling == TELL
    for role in BELOW:
        for operation, text in asked(paid, bulk, ask(role=role)):
            assert CANARY not in text, f"{operation.name} tells a {role}"


def test_only_what_is_named_is_hidden(ask: Ask, store: SqlStore) -> None:
    paid, reader = Paid(store), ask(role=Role.READER)
    shown = {"card": REDACTED, "customer": {"iban": REDACTED, "name": "kim"}, "cards": [{"card": REDACTED, "n": 1}]}
    whole = jobs.get(reader, paid.id)
    assert whole.args == (REDACTED, {"iban": REDACTED, "name": "kim"})
    assert whole.kwargs == {"note": "n", "also": {**ALSO, "card": REDACTED}}
    assert (whole.result, whole.progress) == (shown, shown)
    assert [(step.name, step.result) for step in whole.steps] == [("fetch", shown), ("card", REDACTED)]
    assert [(part.name, part.value) for part in jobs.partials(reader, paid.id)] == [
        ("page", shown),
        ("card", REDACTED),
    ]
    assert [wait.payload for wait in whole.waits] == [shown, REDACTED]
    published = [(event.kind, event.data) for event in events.list_(reader, job=paid.id) if event.by]
    assert published == [("page", shown), ("card", {"card": REDACTED})]
    printed, record = jobs.logs(reader, paid.id)
    assert (printed.text, record.fields, record.message) == ("hello\n", {**shown, "n": 7}, "paid")
    output = whole.attempt_list[0].output
    assert output
    assert output == printed.text + record.text
    assert f"card={REDACTED}" in output.replace('"', "")
    admin = jobs.get(ask(role=Role.TENANT_ADMIN), paid.id)
    assert (admin.args, admin.result) == ((CANARY, HIDDEN["customer"]), HIDDEN)


def test_every_name_that_any_version_gives_is_hidden(ask: Ask, store: SqlStore) -> None:
    paid = Paid(store)
    deploy(store, "v2", redact=("note",))
    [view] = workflows.list_(ask(role=Role.READER))
    assert (view.code_version, view.redact) == ("v2", ("card", "customer.iban", "note"))
    assert workflows.get(ask(), "pay").redact == view.redact
    whole = jobs.get(ask(role=Role.READER), paid.id)
    assert (whole.args[0], whole.kwargs["note"]) == (REDACTED, REDACTED)


def test_a_workflow_that_redacts_nothing_shows_the_same_names(ask: Ask, store: SqlStore) -> None:
    Paid(store)
    store.register_workflows([WorkflowRecord("other", "v1", "default", Policy(), {})])
    other = a_job(workflow="other", payload=call())
    store.submit([other])
    assert jobs.get(ask(role=Role.READER), other.id).args == (CANARY, HIDDEN["customer"])


@pytest.mark.parametrize("role", BELOW)
def test_nobody_finds_out_by_searching(ask: Ask, store: SqlStore, role: Role) -> None:
    Paid(store)
    for name in ("card", "also.card", "card.number", "customer.iban", "customer.iban.country"):
        for workflow in (None, "pay"):
            for search in (jobs.list_, bulks.count):
                with pytest.raises(NotPermitted, match=f"{name} is redacted"):
                    search(ask(role=role), argument=(name, CANARY), workflow=workflow)
    assert len(jobs.list_(ask(role=role), argument=("customer.name", "kim"))) == 1
    assert not jobs.list_(ask(role=role), argument=("card", CANARY), workflow="other").items
    assert len(jobs.list_(ask(role=Role.TENANT_ADMIN), argument=("card", CANARY))) == 1
    if role is Role.OPERATOR:
        with pytest.raises(NotPermitted, match="card is redacted"):
            bulks.start(ask(role=role), "cancel", argument=("card", CANARY))


def test_verbs_answer_without_what_is_redacted(ask: Ask, store: SqlStore) -> None:
    paid, operator = Paid(store), ask(role=Role.OPERATOR)
    asks = paid.stage.asks("Pay?", of={"workflow": "pay", "payload": call()})
    answers: list[Any] = [
        jobs.replay(operator, paid.id),
        jobs.enqueue(ask(role=Role.SUBMITTER), "pay", args=[CANARY, HIDDEN["customer"]], key="k"),
    ]
    stopped = jobs.interrupt(operator, answers[0].id)
    answers += [stopped, jobs.resolve(operator, stopped.id, HIDDEN)]
    answers += [approvals.approve(operator, asks), targets.get(operator, "t1")]
    assert CANARY not in told(answers)
    assert CANARY in told(jobs.get(ask(), stopped.id))


def test_what_cannot_be_read_or_has_no_name_is_hidden_whole(ask: Ask, store: SqlStore) -> None:
    deploy(store)
    damaged = a_job(workflow="pay", payload="{" + CANARY)
    more = a_job(workflow="pay", payload=json.dumps({"args": ["a", {}, "note", CANARY], "kwargs": {}}))
    store.submit([damaged, more])
    reader = ask(role=Role.READER)
    assert jobs.get(reader, damaged.id).args == (REDACTED,)
    assert jobs.get(ask(), damaged.id).args == ("{" + CANARY,)
    assert jobs.get(reader, more.id).args == (REDACTED, {}, "note", REDACTED)

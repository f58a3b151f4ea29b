"""A day with dead letters over HTTP and by a Client: a real worker refuses, a real server signs anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import unstuck
from tests.server.conftest import Site, running
from tests.support.builders import boom, record, settle, submitted
from tests.support.signing import Desk, a_key, attach, envelope_of
from unstuck.assembly.server import ServerOptions
from unstuck.model.errors import UnstuckError
from unstuck.model.lifecycle import JobState
from unstuck.signing import SigningKeys
from unstuck.store.sql_store import SqlStore
from unstuck.views import as_json

KEYS = SigningKeys([a_key("web"), a_key("web2")])
Ask = Callable[..., Any]


class Refused(Exception):
    """By its code."""


@pytest.fixture
def site(store_url: str, store: SqlStore) -> Iterator[Site]:
    with running(ServerOptions(store_url, port=0, signing=KEYS)) as found:
        yield found


@pytest.fixture(params=["http", "client"])
def ask(request: pytest.FixtureRequest, site: Site) -> Iterator[Ask]:
    """ask("jobs.get", job), ask("dead_letters.list", reason="revoked"): what is answered, as JSON has it."""
    if request.param == "http":
        yield lambda name, *job, **said: _over_http(site, name, *job, **said)
        return
    with unstuck.Client(site.url) as client:
        yield lambda name, *job, **said: _by_client(client, name, *job, **said)


LOOKS = {"list", "get", "count", "export", "why"}


def _over_http(site: Site, name: str, *job: str, **said: Any) -> Any:
    noun, verb = name.split(".")
    last = [] if verb in ("list", "get") else [verb.replace("_", "-")]
    path = "/".join(["/api/v1", noun.replace("_", "-"), *job, *last])
    answer = site.get(path, params=said) if verb in LOOKS else site.post(path, said)
    if answer.status_code >= 400:
        raise Refused(answer.json()["code"])
    return answer.json()


def _by_client(client: unstuck.Client, name: str, *job: str, **said: Any) -> Any:
    noun, verb = name.split(".")
    try:
        answer = getattr(getattr(client, noun), verb)(*job, **said)
    except UnstuckError as error:
        raise Refused(type(error).__name__) from None
    return json.loads(as_json(answer))


def refusal(ask: Ask, name: str, *job: str, **said: Any) -> str:
    with pytest.raises(Refused) as told:
        ask(name, *job, **said)
    return str(told.value)


def jobs_of(page: Any) -> set[str]:
    return {letter["job"] for letter in page["items"]}


def test_what_a_worker_refused_is_looked_at_signed_anew_forced_and_discarded(
    ask: Ask, store: SqlStore, store_url: str
) -> None:
    """A43"""
    new = [submitted(store, payload=f'{{"args":[{number}],"kwargs":{{}}}}') for number in range(3)]
    attach(store_url, *((job, envelope_of(store, job, a_key("web"))) for job in new))
    store.revoke_signer("web", "kim", "stolen")
    desk = Desk(store, KEYS)
    assert desk.admitted() == []
    first, second, third = (job.id for job in new)

    assert jobs_of(ask("dead_letters.list", reason="revoked")) == {first, second, third}
    assert ask("dead_letters.list", reason="altered")["items"] == []
    assert ask("dead_letters.count", reason="revoked")["number"] == 3
    exported = ask("dead_letters.export")["items"]
    assert {(each["payload"], each["signature"]["key"]) for each in exported} == {(job.payload, "web") for job in new}
    assert ask("dead_letters.get", first)["message"] == "its key is revoked (signing key 'web')"
    shown = ask("jobs.get", first)
    assert (shown["state"], shown["dead_letter"], shown["signed_by"]) == ("DEAD", "revoked", "web")
    assert f"unstuck dead-letters resign {first}" in json.dumps(ask("jobs.why", first))

    assert refusal(ask, "dead_letters.redrive", first) == "NeedsSignature"
    assert ask("dead_letters.resign", first)["state"] == "QUEUED"
    assert refusal(ask, "dead_letters.get", first) == "NoDeadLetter"
    [admitted] = desk.admitted()
    settle(store, desk.worker, admitted.ref)
    assert (admitted.id, ask("jobs.get", first)["state"], ask("jobs.get", first)["signed_by"]) == (
        first,
        "COMPLETED",
        "web2",
    )

    assert ask("dead_letters.redrive", second, force=True)["state"] == "QUEUED"
    assert desk.admitted() == [], "nothing runs that is not verified"
    assert ask("dead_letters.get", second)["run"] == 2

    assert ask("dead_letters.discard", third)["job"] == third
    assert refusal(ask, "dead_letters.discard", third) == "NoDeadLetter"
    assert record(store, third).state is JobState.DEAD
    assert jobs_of(ask("dead_letters.list")) == {second}


def test_what_ran_out_of_tries_goes_on_behind_a_canary(ask: Ask, store: SqlStore) -> None:
    worn = [submitted(store, retries=0, dead_letter="exhausted", on_failure="continue").id for _ in range(3)]
    desk = Desk(store, KEYS)
    for attempt in desk.admitted():
        settle(store, desk.worker, attempt.ref, boom())
    assert jobs_of(ask("dead_letters.list", reason="exhausted")) == set(worn)
    canary = worn[0]

    assert ask("dead_letters.redrive", canary)["state"] == "QUEUED"
    assert refusal(ask, "dead_letters.redrive_all", reason="exhausted", canary=canary) == "CanaryNotCompleted"
    assert refusal(ask, "dead_letters.redrive_all", reason="exhausted", expected=7) == "OtherCount"
    [attempt] = desk.admitted()
    settle(store, desk.worker, attempt.ref)
    ask("dead_letters.redrive_all", reason="exhausted", canary=canary, expected=2)
    store.carry_bulks()

    assert {job.id for job in desk.admitted()} == set(worn[1:])
    assert ask("dead_letters.list")["items"] == []

"""unstuck hooks: webhooks in, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.support.hooks import github, register
from unstuck.intake.hooks import job_of
from unstuck.model.hooks import Delivery
from unstuck.store.port import HookRefusal, NewHookDelivery
from unstuck.store.sql_store import SqlStore

MAP = ("--map", "repo=body.repo", "--map", 'n={"from": "query.n", "default": 1}')


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


def test_one_is_made_shown_changed_rotated_paused_and_deleted(
    unstuck: Command, store: SqlStore, tmp_path: Path
) -> None:
    assert "no hooks; make one" in unstuck("hooks").err
    register(store)
    made = unstuck("hooks", "create", "pushes", "build", "--scheme", "github", *MAP, "--tag", "ci", "--json").object
    assert (made["workflow"], made["scheme"], made["tags"], made["sealed"]) == ("build", "github", ["ci"], False)
    shown = unstuck("hooks", "show", "pushes")
    assert made["path"] in shown.out
    assert "in clear text" in shown.out
    assert made["secret"] not in shown.out
    [listed] = unstuck("hooks", "--json").lines
    assert listed == {name: value for name, value in made.items() if name != "secret"}

    assert unstuck("hooks", "update", "pushes", "--priority", "4", "--json").object["priority"] == 4
    (tmp_path / "secret").write_text("0123456789abcdef-of-the-sender\n")
    rotated = unstuck("hooks", "rotate", "pushes", "--overlap", "1h", "--secret-file", "secret")
    assert "secret   0123456789abcdef-of-the-sender" in rotated.out
    assert "accepted until" in rotated.out
    assert "is paused" in unstuck("hooks", "pause", "pushes", "--reason", "r").out
    assert "accepts deliveries" in unstuck("hooks", "resume", "pushes").out
    health = unstuck("health", "--no-workers").out + unstuck("health").err
    assert "secrets in clear text" in health
    assert unstuck("hooks", "delete", "pushes").code == 0
    assert unstuck("hooks", "show", "pushes").code == 3
    said = [line["verb"] for line in unstuck("audit", "--verb", "hooks", "--json").lines]
    assert said == [f"hooks.{verb}" for verb in ("delete", "resume", "pause", "rotate", "update", "create")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--map", "nope=body.x"), "there is no parameter nope"),
        (("--map", "repo"), "is not NAME=SOURCE"),
        (("--map", "repo=boddy.x"), "is not body"),
        (("--map", 'repo={"value": 3}'), "expected string, got integer"),
        (("--map", "repo=body.repo", "--scheme", "none"), "not one of standard, github, stripe, hmac"),
        (("--map", "repo=body.repo", "--scheme", "hmac", "--signature", '{"signed": "x"}'), "must have {body}"),
        (("--map", "repo=body.repo", "--secret-file", "nowhere"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    unstuck: Command, store: SqlStore, words: tuple[str, ...], told: str
) -> None:
    register(store)
    refused = unstuck("hooks", "create", "pushes", "build", *words)
    assert (refused.code, told in refused.err) == (2, True), refused.err


def test_what_a_delivery_would_become_is_told_and_what_became_of_them(unstuck: Command, store: SqlStore) -> None:
    register(store)
    made = unstuck("hooks", "create", "pushes", "build", "--scheme", "github", *MAP, "--json").object
    body = '{"repo": "a/b"}'
    tried = unstuck("hooks", "dry-run", "pushes", "--body", body, "--query", "n=7")
    assert tried.code == 0, tried.err
    assert "repo = 'a/b'" in tried.out
    assert "n = 7" in tried.out
    assert "carries no signature" in tried.err
    refused = unstuck("hooks", "dry-run", "pushes", "--body", "{}")
    assert (refused.code, "there is no body.repo" in refused.out) == (1, True)
    signed = [f"{name}:{value}" for name, value in github(made["secret"], body.encode()).items()]
    told = unstuck(
        "hooks", "dry-run", "pushes", "--body", body, *(w for s in signed for w in ("--header", s)), "--json"
    )
    assert told.object == {
        "accepted": True,
        "signed": True,
        "arguments": {"repo": "a/b", "n": 1},
        "problem": None,
        "reason": None,
    }

    [hook] = store.hooks(None)
    job = job_of(store, hook, Delivery(body.encode()), "id:d-1")
    store.deliver_to_hook(NewHookDelivery(hook, "id:d-1", job))
    store.refuse_hook_deliveries([HookRefusal(hook.number, "wrong_signature", "by no secret", 401, calls=12)])
    table = unstuck("hooks", "deliveries", "pushes").out
    assert job.id in table
    assert "wrong_signature: by no secret" in table
    [line] = unstuck("hooks", "deliveries", "pushes", "--outcome", "refused", "--json").lines
    assert (line["calls"], line["status"], json.dumps(line["job"])) == (12, 401, "null")

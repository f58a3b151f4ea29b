"""What a job's policy is: the same at every door, from the settings of the worker that registered its workflow."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import unstuck as unstuck_
from tests.cli import policies
from tests.cli.command import Command, ended
from tests.support.eventually import eventually
from tests.tiers import slow
from unstuck.model.policy import Policy

APP = "tests.cli.policies:app"


@contextmanager
def a_worker(unstuck: Command, *flags: str, **variables: str) -> Iterator[None]:
    words = ("worker", APP, "--concurrency", "4", "--processes", "1", "--name", "w1", *flags)
    with (unstuck.directory / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            unstuck.words(*words),
            cwd=unstuck.directory,
            env=unstuck.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    with ended(process, within=20):
        eventually(lambda: "plain" in unstuck("workflows").out, timeout=30)
        yield


@pytest.fixture
def app(store_url: str) -> Iterator[unstuck_.App]:
    """The code of the worker, in a program with an environment of its own."""
    with unstuck_.App(store_url) as app:
        yield policies.declare(app)


def door(app: unstuck_.App, name: str) -> unstuck_.Workflow[[], Any]:
    return unstuck_.Workflow(app._code, name, lambda: None)


def policy(app: unstuck_.App, job: str) -> Policy:
    record = app._engine.store.get("default", job)
    assert record is not None
    return record.policy


def test_every_door_gives_a_job_the_settings_of_the_worker(unstuck: Command, app: unstuck_.App) -> None:
    plain, own, parent = (door(app, name) for name in ("plain", "own", "parent"))
    early = [plain.enqueue().id, unstuck("enqueue", "plain", "--app", APP).word]

    with a_worker(unstuck, CANCEL_GRACE_SECONDS="3", TOKEN_LIMIT="10"):
        doors = {
            "Python": plain.enqueue().id,
            "bulk": plain.enqueue_many([(), ()])[1].id,
            "enqueue --app": unstuck("enqueue", "plain", "--app", APP).word,
            "enqueue": unstuck("enqueue", "plain").word,
            "spawn": parent.enqueue().result(timeout=30),
            "Python, before any worker": early[0],
            "enqueue --app, before any worker": early[1],
        }
        done = app.job(doors["Python"])
        done.result(timeout=30)
        doors["replay"] = done.replay().id
        found = {name: policy(app, job) for name, job in doors.items()}
        assert {name: (p.grace, dict(p.budget)) for name, p in found.items()} == dict.fromkeys(
            found, (3.0, {"tokens": 10.0})
        )
        # The decorator over that, and `using()` over the decorator.
        by_code = [own.enqueue().id, unstuck("enqueue", "own", "--app", APP).word, unstuck("enqueue", "own").word]
        assert [policy(app, job).grace for job in by_code] == [2.0] * 3
        said = policy(app, own.using(grace=1).enqueue().id)
        assert (said.grace, said.retries, dict(said.budget)) == (1.0, 1, {"tokens": 10.0})


@slow
@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (("--preset", "human_gate"), {"retries": 0, "on_lost": "fail", "on_drain_timeout": "pause"}),
        (("--preset", "retry_first"), {"on_drain_timeout": "expire"}),
        (("--set", "cancel_grace_seconds=3", "--set", "max_timeout=5000"), {"grace": 3.0}),
    ],
    ids=["human_gate", "retry_first", "set"],
)
def test_what_a_worker_is_started_with_reaches_the_jobs(
    unstuck: Command, app: unstuck_.App, flags: tuple[str, ...], wanted: dict[str, Any]
) -> None:
    plain = door(app, "plain")
    with a_worker(unstuck, *flags):
        jobs = [plain.enqueue().id, unstuck("enqueue", "plain", "--app", APP).word, unstuck("enqueue", "plain").word]
        assert [{name: getattr(policy(app, job), name) for name in wanted} for job in jobs] == [wanted] * 3
        if "max_timeout=5000" in flags:
            assert policy(app, plain.using(timeout=4000).enqueue().id).timeout == 4000
            with pytest.raises(unstuck_.InvalidInput, match="timeout=6000 is above max_timeout=5000"):
                plain.using(timeout=6000).enqueue()


def test_check_and_config_tell_what_jobs_will_get(unstuck: Command) -> None:
    """`own` says something itself; all else is what the worker is started with."""
    told = unstuck("worker", APP, "--check", "--preset", "human_gate", "--set", "grace=3", TOKEN_LIMIT="10").err
    for line in ("grace 3 (flags)", "retries 0 (preset human_gate)", "budget tokens=10 (TOKEN_LIMIT)"):
        assert line in " ".join(told.split())
    assert "own says  grace=2, retries=1" in told
    assert "unstuck workflows list NAME" in unstuck("config", "show", "--changed").err

    refused = unstuck("worker", APP, "--check", "--set", "max_timeout=30")
    assert refused.code == 2
    assert "timeout=600.0 is above max_timeout=30" in refused.err


def test_a_decorator_that_no_worker_would_register_is_told_by_check(unstuck: Command) -> None:
    (unstuck.directory / "long.py").write_text(
        "import unstuck\napp = unstuck.App()\n@app.workflow(timeout=7200)\ndef long() -> None: ...\n"
    )
    refused = unstuck("worker", "long:app", "--check")
    assert refused.code == 2
    assert "workflow long: timeout=7200 is above max_timeout=3600" in refused.err
    assert unstuck("worker", "long:app", "--check", "--set", "max_timeout=2h").code == 0

"""What `ctx.spawn` asks a workflow for: the job that a call would be, checked and not stored."""

from __future__ import annotations

import json

import pytest

import unstuck

app = unstuck.App("sqlite:////nowhere/never-opened.db")


@app.workflow(target="{repo}", retries=7)
def build(ctx: unstuck.Context, repo: str, fast: bool = False) -> str:
    return repo


def test_a_draft_is_the_job_that_a_call_would_be_and_opens_no_database() -> None:
    job = build.using(priority=3).draft(["acme"], {"fast": True}, "t1")
    assert (job.workflow, job.tenant, job.target, job.priority, job.policy.retries) == ("build", "t1", "acme", 3, 7)
    assert "acme" in json.dumps(json.loads(job.payload))
    assert job.id != build.draft(["acme"], {}, "t1").id


def test_a_draft_is_checked_as_any_call_is() -> None:
    with pytest.raises(unstuck.InvalidArguments):
        build.draft([], {"nonsense": 1}, "t1")


def test_a_child_belongs_to_the_tenant_of_its_parent() -> None:
    assert build.using(tenant="t1").draft(["a"], {}, "t1").tenant == "t1"
    with pytest.raises(unstuck.InvalidInput, match="tenant"):
        build.using(tenant="t2").draft(["a"], {}, "t1")

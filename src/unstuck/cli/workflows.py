"""unstuck workflows …: what can be run, as its workers registered it; pause and limit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from unstuck.cli import gates, options, output
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.policy import Policy
from unstuck.operations import workflows
from unstuck.views import plain
from unstuck.views.gates import BreakerView, WorkflowView, WorkflowWhole

app = options.group("Workflows: what can be run; pause and limit it.", default="list")

Name = Annotated[str, Argument(metavar="NAME", help="the workflow's name")]


@app.command("list")
def list_(
    name: Annotated[str | None, Argument(metavar="NAME", help="only this one, with its arguments")] = None,
    *,
    common: options.Common,
) -> None:
    """The registered workflows: queue, limits, arguments."""
    with opened(common) as session:
        one = None if name is None else workflows.get(session.caller, name)
        found = workflows.list_(session.caller).items if one is None else (one,)
        now = session.now()
    if common.json:
        output.emit_each(map(plain, found))
        return
    output.table(
        ["WORKFLOW", "QUEUE", "TIMEOUT", "RETRIES", "CODE", "REGISTERED", "SUMMARY"],
        [
            (
                w.name,
                w.queue,
                w.policy.timeout if w.policy.timeout == "unlimited" else output.duration(float(w.policy.timeout)),
                w.policy.retries,
                w.code_version,
                output.age(w.registered_at, now),
                (w.doc or "").strip().split("\n")[0],
            )
            for w in found
        ],
        empty="no workflows yet: they are registered when a worker starts: unstuck worker MODULE:APP",
    )
    _print_gates(found, now)
    if one is not None:
        _print_details(one, now)


def _print_gates(found: Sequence[WorkflowView], now: datetime) -> None:
    """Below the table: most workflows have none."""
    lines = [f"paused  {p.name} {gates.pause_text([p], now)}" for w in found for p in w.pauses]
    lines += [
        f"limit   {x.name}: {gates.limit_text(x)}, set by {output.visible(x.set_by)}" for w in found for x in w.limits
    ]
    if lines:
        output.say("\n" + "\n".join(lines))


def _print_details(workflow: WorkflowWhole, now: datetime) -> None:
    _print_breaker(workflow.breaker, now)
    if workflow.target is not None:
        then = "blocks it" if workflow.policy.on_failure == "block" else "does not block it"
        output.say(f"\ntarget     {workflow.target}  (a failure {then})")
    if workflow.limit_key is not None:
        output.say(f"limit key  {workflow.limit_key}")
    if workflow.redact:
        output.say(
            f"redacted   {', '.join(map(output.visible, workflow.redact))}  (only admins see these of its jobs' data)"
        )
    output.say("\nArguments")
    for line in parameters(workflow.schema):
        output.say(f"  {line}")
    output.say("\nPolicy of its jobs, where neither using() nor the code that enqueues says otherwise")
    for name, value in policy_facts(workflow.policy, workflow.max_timeout):
        output.say(f"  {name:<18} {value}")


def _print_breaker(breaker: BreakerView, now: datetime) -> None:
    """What counts against it, and until when."""
    rule = f"{breaker.number} of {breaker.threshold}" if breaker.threshold else f"{breaker.number}, never too many,"
    output.say(f"\nbreaker    {rule} within {output.duration(breaker.window)}")
    for mark in breaker.marks:
        whose = "" if mark.job is None else f"  job {mark.job}"
        told = f"{output.age(mark.at, now)}, counts no more {output.age(mark.until_at, now)}"
        output.say(f"  {mark.harm:<6}  {told}{whose}")


def policy_facts(policy: Policy, max_timeout: float | None) -> list[tuple[str, str]]:
    facts = asdict(policy) | {"budget": dict(policy.budget), "max_timeout": max_timeout}
    return [(name, fact_text(value)) for name, value in facts.items()]


def fact_text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{unit}={most:g}" for unit, most in value.items()) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def parameters(schema: dict[str, Any]) -> list[str]:
    """A JSON schema's properties, one line each."""
    required = set(schema.get("required", []))
    lines = [
        f"{name}: {_type(facts)}{'' if name in required else ' (optional)'}"
        for name, facts in (schema.get("properties") or {}).items()
        if isinstance(facts, dict)
    ]
    return lines or ["none, or not described"]


def _type(facts: dict[str, Any]) -> str:
    kind = facts.get("type") or facts.get("enum") or facts.get("$ref") or "any"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


@app.command()
def pause(
    workflow: Name,
    *,
    flags: gates.PauseFlags,
    all_tenants: gates.AllTenants = False,
    by: options.By = None,
    common: options.Common,
) -> None:
    """Start nothing new of a workflow. What runs goes on, what comes waits."""
    gates.pause(workflows.pause, workflow, flags, Where(common, all_tenants), by)


@app.command()
def unpause(
    workflow: Name, all_tenants: gates.AllTenants = False, by: options.By = None, *, common: options.Common
) -> None:
    """Lift the pause of a workflow."""
    gates.unpause(workflows.unpause, workflow, Where(common, all_tenants), by)


@app.command()
def limit(
    workflow: Name,
    each_key: Annotated[bool, option("--each-key", help="the jobs of each limit key by itself, not all")] = False,
    *,
    flags: gates.LimitFlags,
    all_tenants: gates.Together = False,
    by: options.By = None,
    common: options.Common,
) -> None:
    """Limit how much of a workflow, or of each of its limit keys, runs or starts. What you do not name stays as it
    stands."""
    ask, lift = partial(workflows.limit, each_key=each_key), partial(workflows.unlimit, each_key=each_key)
    gates.limit(ask, lift, workflow, flags, Where(common, all_tenants), by)

"""The commands that people are told to type: remedies that several reasons, or the command line, share."""

from __future__ import annotations

from unstuck.model.budget import payer_of
from unstuck.model.job import DEFAULT_TENANT, JobRecord
from unstuck.model.spelling import about, given
from unstuck.model.why.facts import EVERY_TENANT, Shut


def of_tenant(tenant: str) -> str:
    """The option that a command about this tenant needs, whatever tenant the shell is of."""
    return "" if tenant == DEFAULT_TENANT else given("--tenant", tenant)


def _of_tenants(shut: Shut, kind: str) -> str:
    """The option that says of which tenants a gate is."""
    if kind == "tenant" or shut.tenant == DEFAULT_TENANT:
        return ""
    return "--all-tenants" if shut.tenant == EVERY_TENANT else given("--tenant", shut.tenant)


def how_to_unpause(shut: Shut, kind: str) -> str:
    return about(f"unstuck {kind}s unpause", shut.name, _of_tenants(shut, kind))


def how_to_change_limit(shut: Shut, option: str) -> str:
    verbs = {"key": "limits key", "workflow_key": "workflows limit"}
    verb = verbs.get(shut.kind, f"{shut.kind}s limit")
    each = "--each-key " if shut.kind == "workflow_key" else ""
    return about(f"unstuck {verb}", shut.name, f"{each}{option} {_of_tenants(shut, shut.kind)}".rstrip())


def how_to_send(job: str, event: str, topic: str | None, tenant: str) -> str:
    """The command that answers a wait for this event."""
    if topic is not None:
        return about("unstuck events send", event, f"{given('--topic', topic)} {of_tenant(tenant)}".strip())
    return about(f"unstuck events send {job}", event, of_tenant(tenant))


def how_to_decide(verb: str, job: str, key: str, tenant: str) -> str:
    """It names the question: pasted too late, it must not decide the next one."""
    return f"unstuck approvals {verb} {job} {given('--key', key)} {of_tenant(tenant)}".strip()


def how_to_try_again(job: JobRecord) -> str:
    """The command for a job that has ended otherwise than it should: a new run that keeps its finished steps."""
    return f"unstuck jobs resume {job.id} {of_tenant(job.tenant)}".rstrip()


def how_to_renew(job: JobRecord) -> str:
    """The command for a job whose budget is used up: a new run of the one whose budget it is."""
    return f"unstuck jobs resume {payer_of(job.error_message) or job.id} {of_tenant(job.tenant)}".rstrip()


def how_to_raise(job: JobRecord) -> str:
    """The command that does a job again with a larger budget. MOST is a word to replace: pasted it is refused."""
    said = (job.error_message or "").split("; ")
    payer = payer_of(job.error_message)
    known = [part.rpartition(" ")[2] for part in said] if payer else [unit for unit, _ in job.policy.budget]
    over = [unit for unit in known if any(part.endswith(f" {unit}") for part in said)] or ["UNIT"]
    most = " ".join(given("--budget", f"{unit}=MOST") for unit in over)
    return f"unstuck jobs replay {payer or job.id} {most} {of_tenant(job.tenant)}".strip()

"""How a client signs what it submits, before it is sent: by what the workers have registered of the workflow.

What the server would fill in is said by the request itself, because it is signed: queue, target, time limit. So the
row of a workflow may be a minute old here; what the request says is what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from unstuck.chance import Chance, SystemChance
from unstuck.clock import Clock, MachineClock, wall
from unstuck.intake.schema import pack
from unstuck.intake.submit import UNSAID, Unsaid, by_our_names, job_id
from unstuck.intake.templates import fill
from unstuck.model.errors import InvalidInput, SignatureRefused
from unstuck.model.payload import check_instant
from unstuck.model.policy import said
from unstuck.model.signing import SignatureProblem
from unstuck.operations.kinds import seconds_or_none
from unstuck.records import dataclass
from unstuck.signing import SigningKey, SigningKeys, StoredCall, micros

if TYPE_CHECKING:
    from unstuck.views.gates import WorkflowView

#: Seconds that a signature lives which is sent at once: so far the clocks of client and server may be apart.
LIFE: Final = 3600.0
#: Seconds for which the row of a workflow is used without another look.
ROW_LIFE: Final = 60.0
#: What is signed, and said by payload and signature alone.
_SIGNED: Final = ("args", "kwargs", "at", "delay", "policy")


@dataclass(slots=True)
class RequestSigner:
    """Signs the arguments of `jobs.enqueue`. Of any thread: two that miss a row at once both ask for it."""

    keys: SigningKeys
    chance: Chance = field(default_factory=SystemChance)
    clock: Clock = field(default_factory=MachineClock)
    now: Callable[[], datetime] = wall
    _rows: dict[tuple[str, str], tuple[float, WorkflowView]] = field(default_factory=dict)

    def row(self, tenant: str, workflow: str) -> WorkflowView | None:
        """None: it has to be asked for."""
        at, view = self._rows.get((tenant, workflow), (0.0, None))
        return view if self.clock.boot() - at <= ROW_LIFE else None

    def keep(self, tenant: str, view: WorkflowView) -> WorkflowView:
        self._rows[tenant, view.name] = (self.clock.boot(), view)
        return view

    def signer(self, tenant: str | None) -> SigningKey | None:
        """The key that signs for this tenant now. None: none does."""
        if not self.keys:
            return None
        if tenant is None:
            raise InvalidInput("whose job is signed? name the tenant: it stands in what is signed")
        return self.keys.signer(tenant, "submit", self.now())

    def check_unsigned(self, tenant: str | None, request: Mapping[str, Any]) -> None:
        """Of a request for which there is no key. What its workflow's row would say of the queue is the server's to
        know, which refuses it by its own settings."""
        workflow, queue = str(request.get("workflow")), str(request.get("queue") or "")
        if self.keys.requires(tenant or "", queue, workflow):
            problem = SignatureProblem.MISSING
            raise SignatureRefused(problem.value, problem.sentence, request.get("id"))

    def signed(self, key: SigningKey, tenant: str, view: WorkflowView, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request with payload and signature in place of what they say."""
        now, request = self.now(), dict(request)
        args, kwargs = request.get("args") or (), request.get("kwargs") or {}
        payload = pack(view.name, view.schema, args, kwargs)
        ident = self.chance.job_id() if request.get("id") is None else job_id(request["id"])
        asked = by_our_names(request.get("policy") or {})
        policy = view.policy.with_(view.name, asked)
        text = said(view.name, asked, {"timeout": policy.timeout})
        target, start = request.get("target", UNSAID), _start(request, now)
        if isinstance(target, Unsaid):
            target = None if view.target is None else fill(view.name, "target", view.target, view.schema, payload)
        call = StoredCall(
            job=ident,
            tenant=tenant,
            workflow=view.name,
            queue=request.get("queue") or view.queue,
            target=target,
            priority=request.get("priority") or 0,
            payload=payload,
            policy=policy,
            not_before=None if start is None else micros(start),
        )
        envelope = self.keys.sign(key, call, now, policy=text, life=LIFE)
        rest = {name: value for name, value in request.items() if name not in _SIGNED}
        where = {"id": ident, "queue": call.queue, "target": target, "priority": call.priority}
        return rest | where | {"payload": payload, "signature": envelope.facts()}


def _start(request: Mapping[str, Any], now: datetime) -> datetime | None:
    delay, at = seconds_or_none(request.get("delay"), "delay"), request.get("at")
    if delay and at is not None:
        raise InvalidInput("delay= and at= exclude each other")
    if delay:
        return now + timedelta(seconds=delay)
    return None if at is None else check_instant(at, "at")

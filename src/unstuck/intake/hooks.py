"""Hooks: checked at the door, kept by the store. How a delivery becomes the job of its hook is here too, the same for
one that came and for one that somebody only tries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from unstuck.chance import unguessable
from unstuck.intake.schema import misfit_of, pack, rule_of, types_of
from unstuck.intake.submit import Options, RoutedWorkflow, Submitter, Unsaid
from unstuck.model import hooks
from unstuck.model.errors import (
    Conflict,
    InvalidArguments,
    InvalidInput,
    SecretNotOpened,
    UnknownHook,
    UnknownWorkflowName,
    UnstuckError,
    quoted,
)
from unstuck.model.hooks import (
    ID_ALPHABET,
    ID_BEGINNING,
    ID_LENGTH,
    TAG,
    ArgumentSource,
    Delivery,
    DeliveryProblem,
    DeliveryRefused,
    HookSpec,
    Scheme,
)
from unstuck.model.job import DEFAULT_TENANT, NewJob
from unstuck.model.payload import check_name, check_wording, encode, plain_text
from unstuck.records import dataclass
from unstuck.sealing import NO_SEALER, Sealer
from unstuck.store.port import HookRecord, NewHook, Store

#: Bytes of a new secret.
SECRET_BYTES = 32
LONGEST_OVERLAP = 366 * 86400.0
_TRIES = 5
_SPEC = frozenset(each.name for each in fields(HookSpec))
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class MadeHook:
    """A hook, and the secret that it was given; no other answer has that."""

    hook: HookRecord
    secret: str


class HookVerbs:
    """Hooks of one tenant; `by` goes into the audit."""

    def __init__(
        self,
        store: Store,
        *,
        tenant: str = DEFAULT_TENANT,
        by: str = "app",
        max_timeout: float | None = None,
        sealer: Sealer = NO_SEALER,
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._by = by
        self._max_timeout = max_timeout
        self._sealer = sealer

    def create(self, name: str, workflow: str, secret: str | None = None, **said: Any) -> MadeHook:
        named = _check_hook_name(name)
        given = {option: value for option, value in said.items() if value is not None}
        spec = self._checked(named, changed(HookSpec(check_name(workflow, "workflow")), given))
        text, uid = _secret(spec.scheme, secret), _new_uid()
        stored = self._sealer.seal(text.encode(), f"hook/{uid}")
        made = self._store.create_hook(NewHook(uid, self._tenant, named, spec, stored), self._by)
        return MadeHook(made, text)

    def update(self, name: str, **said: Any) -> HookRecord:
        """What is not said stays as it stands. A change that meets another one is made upon that."""
        for _ in range(_TRIES):
            found = self.get(name)
            spec = self._checked(found.name, changed(found.spec, said))
            if spec.scheme != found.spec.scheme:
                problem = f"hook {found.name} has the scheme {found.spec.scheme}, and its secret is of that scheme"
                raise InvalidInput(f"{problem}; make another hook for {spec.scheme}")
            try:
                return self._store.change_hook(found.number, spec, self._by, found.version)
            except Conflict:
                if self.get(name).version == found.version:
                    raise
        raise Conflict(f"hook {name} is changed by others all the time; try again")

    def rotate(self, name: str, secret: str | None = None, overlap: float = 86400.0) -> MadeHook:
        found = self.get(name)
        if not 0 <= overlap <= LONGEST_OVERLAP:
            raise InvalidInput(f"overlap={overlap:g} is not between 0 seconds and a year")
        text = _secret(found.spec.scheme, secret)
        stored = self._sealer.seal(text.encode(), found.place)
        return MadeHook(self._store.rotate_hook(found.number, stored, overlap, self._by), text)

    def pause(self, name: str, reason: str | None = None) -> HookRecord:
        return self._store.pause_hook(self.get(name).number, self._by, check_wording(reason, "reason"))

    def resume(self, name: str) -> HookRecord:
        return self._store.resume_hook(self.get(name).number, self._by)

    def delete(self, name: str) -> HookRecord:
        return self._store.delete_hook(self.get(name).number, self._by)

    def get(self, name: str) -> HookRecord:
        found = self._store.hook(self._tenant, plain_text(name)) if isinstance(name, str) else None
        if found is None:
            raise UnknownHook(name)
        return found

    def _checked(self, name: str, spec: HookSpec) -> HookSpec:
        """What could never become a call of the workflow is told now, and not to a sender at night."""
        hooks.checked(spec)
        workflow = known_workflow(self._store, self._tenant, spec)
        if problems := misfits(spec, workflow.schema):
            raise InvalidArguments(spec.workflow, "; ".join(problems))
        Submitter(self._store, tenant=self._tenant, max_timeout=self._max_timeout).pattern(
            workflow, options_of(name, spec)
        )
        return spec


def _check_hook_name(name: Any) -> str:
    named = check_name(name, "hook")
    if len(named) > hooks.MOST_NAME:
        raise InvalidInput(f"hook {quoted(named)} has a name of more than {hooks.MOST_NAME} characters")
    if named.startswith(ID_BEGINNING):
        raise InvalidInput(f"hook {quoted(named)}: {ID_BEGINNING} is what the addresses of hooks begin with")
    return named


def _new_uid() -> str:
    number = unguessable(len(ID_ALPHABET) ** ID_LENGTH)
    letters = []
    for _ in range(ID_LENGTH):
        number, place = divmod(number, len(ID_ALPHABET))
        letters.append(ID_ALPHABET[place])
    return ID_BEGINNING + "".join(letters)


def _secret(scheme: Scheme, given: str | None) -> str:
    if given is not None:
        return hooks.check_secret(scheme, plain_text(given))
    return hooks.spelled(scheme, unguessable(1 << 8 * SECRET_BYTES).to_bytes(SECRET_BYTES, "big"))


def changed(spec: HookSpec, said: Mapping[str, Any]) -> HookSpec:
    """What is not said stays; its kinds are checked, the rest by `hooks.checked`."""
    new = {name: value for name, value in said.items() if not isinstance(value, Unsaid)}
    if unknown := sorted(set(new) - _SPEC):
        raise InvalidInput(f"there is no option {unknown[0]} of a hook; known: {', '.join(sorted(_SPEC))}")
    usual = HookSpec("")
    for name in ("priority", "max_bytes", "scheme"):
        if name in new and new[name] is None:
            new[name] = getattr(usual, name)
    if "tags" in new:
        tags = new["tags"] or ()
        new["tags"] = (tags,) if isinstance(tags, str) else tuple(tags)
    for name in ("arguments", "signature", "policy"):
        if name in new and not isinstance(new[name] or {}, Mapping):
            raise InvalidInput(f"{name}={quoted(new[name])} is not a mapping")
        if name in new:
            new[name] = dict(new[name] or {})
    found = replace(spec, **{name: plain_text(value) for name, value in new.items()})
    encode([dict(found.arguments), dict(found.signature), dict(found.policy)], f"hook of {found.workflow}")
    return found


def known_workflow(store: Store, tenant: str, spec: HookSpec) -> RoutedWorkflow:
    workflow = store.workflow(spec.workflow, tenant)
    if workflow is None:
        raise UnknownWorkflowName(spec.workflow, {each.name for each in store.workflows(tenant)})
    return workflow


# --- the mapping against the workflow's schema --------------------------------------------------------------------


def misfits(spec: HookSpec, schema: Mapping[str, Any]) -> list[str]:
    """Why no delivery could ever become a call of this workflow."""
    if not schema:
        return []
    named = hooks.sources(spec.arguments)
    found: list[str] = []
    if schema.get("additionalProperties") is False:
        known = schema.get("properties", {})
        found += [f"there is no parameter {name}" for name in named if name not in known]
    found += [
        f"missing a required argument: {name}; say where it comes from"
        for name in schema.get("required", [])
        if name not in named
    ]
    return found + [problem for name, source in named.items() if (problem := _misfit(name, source, schema))]


def _misfit(name: str, source: ArgumentSource, schema: Mapping[str, Any]) -> str | None:
    if source.has_default and (problem := misfit_of(name, source.default, schema)):
        return f"{name}: {'its value' if source.kind == 'value' else 'its default'}: {problem}"
    wanted = types_of(rule_of(name, schema), schema)
    if source.is_text and wanted and not wanted & {"string", "integer", "number", "boolean"}:
        return f"{name}: {source} is text, expected {' or '.join(sorted(wanted))}"
    if source.kind in ("raw", "delivery") and wanted and "string" not in wanted:
        return f"{name}: {source} is text, expected {' or '.join(sorted(wanted))}"
    return None


def arguments_of(spec: HookSpec, schema: Mapping[str, Any], delivery: Delivery, key: str) -> dict[str, Any]:
    """What a delivery says; what it lacks is left out if the workflow does not need it. DeliveryRefused."""
    required, found = set(schema.get("required", [])), dict[str, Any]()
    for name, source in hooks.sources(spec.arguments).items():
        is_there, value = hooks.found_at(source, delivery, key.partition(":")[2])
        if is_there:
            text = isinstance(value, str) and source.is_text
            found[name] = _read(value, types_of(rule_of(name, schema), schema)) if text else value
        elif source.has_default:
            found[name] = source.default
        elif name in required or not schema:
            raise DeliveryRefused(DeliveryProblem.MISFIT, f"{name}: there is no {source} in the delivery")
    return found


def _read(text: str, wanted: frozenset[str]) -> Any:
    """Headers and queries know text alone: a number is read from it where one is wanted, and no text."""
    if not wanted or "string" in wanted:
        return text
    if "integer" in wanted and _WHOLE.fullmatch(text):
        return int(text)
    if "number" in wanted and _NUMBER.fullmatch(text):
        return float(text)
    if "boolean" in wanted and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text


# --- a delivery's job ---------------------------------------------------------------------------------------------


def options_of(name: str, spec: HookSpec) -> Options:
    said: dict[str, Any] = {"priority": spec.priority, "tags": (*spec.tags, f"{TAG}{name}"), **spec.policy}
    if spec.queue is not None:
        said["queue"] = spec.queue
    if spec.target is not None:
        said["target"] = spec.target
    strays = sorted(
        set(spec.policy)
        & {"priority", "tags", "queue", "target", "key", "id", "after", "delay", "at", "hold", "tenant"}
    )
    if strays:
        raise InvalidInput(f"{strays[0]} is not an option of a policy")
    return Options().with_(**said)


def job_of(store: Store, hook: HookRecord, delivery: Delivery, key: str, max_timeout: float | None = None) -> NewJob:
    """Checked as any submit is, by the row of its workflow as it stands now. DeliveryRefused for what does not fit;
    UnknownWorkflowName."""
    spec = hook.spec
    workflow = known_workflow(store, hook.tenant, spec)
    kwargs = arguments_of(spec, workflow.schema, delivery, key)
    try:
        payload = pack(workflow.name, workflow.schema, *_placed(workflow.schema, kwargs))
        submitter = Submitter(store, tenant=hook.tenant, max_timeout=max_timeout)
        return submitter.job(workflow, payload, options_of(hook.name, spec))
    except InvalidInput as error:
        raise DeliveryRefused(DeliveryProblem.MISFIT, str(error)) from None


def _placed(schema: Mapping[str, Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What can have a place has it: some parameters take nothing by name."""
    args, rest = list[Any](), dict(kwargs)
    for name in schema.get("x-positional", []):
        if name not in rest:
            break
        args.append(rest.pop(name))
    return args, rest


def opened_secrets(hook: HookRecord, sealer: Sealer) -> list[tuple[str, datetime | None]]:
    """Those that are accepted, and until when. SecretNotOpened, if none can be opened here."""
    found: list[tuple[str, datetime | None]] = []
    problem = None
    for secret in hook.secrets:
        if secret.until is not None and secret.until <= hook.now:
            continue
        try:
            found.append((sealer.open(secret.stored, hook.place).decode(), secret.until))
        except SecretNotOpened as error:
            problem = error
    if problem is not None and not found:
        raise problem
    return found


def calendar(store: Store, now: datetime) -> float:
    """Unix time by the database's clock, as senders sign it: the engine's own time may have left it behind a leap."""
    return now.timestamp() - store.clock_stand().ahead


# --- what somebody only tries -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriedDelivery:
    """What would become of a delivery. `is_signed`: None: it carries no signature, and that was passed over."""

    is_signed: bool | None
    arguments: dict[str, Any] | None
    problem: str | None = None
    reason: str | None = None


def tried(
    store: Store, hook: HookRecord, delivery: Delivery, sealer: Sealer, max_timeout: float | None
) -> TriedDelivery:
    """Nothing is stored. The gates of a submit are not asked: they may be open when it comes."""
    is_signed: bool | None = None
    key, arguments = "id:test", None
    try:
        if any(delivery.header(name) for name in hook.spec.signature_headers):
            is_signed = False
            secrets = [text for text, _ in opened_secrets(hook, sealer)]
            key = hooks.verified(hook.spec, secrets, delivery, calendar(store, hook.now), store.hook_rules().window)
            is_signed = True
        arguments = arguments_of(hook.spec, known_workflow(store, hook.tenant, hook.spec).schema, delivery, key)
        job_of(store, hook, delivery, key, max_timeout)
    except DeliveryRefused as refused:
        return TriedDelivery(is_signed, arguments, str(refused.problem), str(refused))
    except UnstuckError as error:
        problem = f"{type(error).__name__}: {error}"
        return TriedDelivery(is_signed, arguments, str(DeliveryProblem.NOT_ACCEPTED), problem)
    return TriedDelivery(is_signed, arguments)


def as_delivery(
    body: Any, headers: Mapping[str, str], query: Mapping[str, str] | Sequence[tuple[str, str]]
) -> Delivery:
    """Of what somebody wrote down: a body that is not text is written as JSON."""
    if not isinstance(headers, Mapping) or not all(isinstance(v, str) for pair in headers.items() for v in pair):
        raise InvalidInput(f"headers={quoted(headers)} is not a mapping of names to texts")
    pairs = list(query.items()) if isinstance(query, Mapping) else list(query)
    text = body if isinstance(body, str) else encode(body, "the body", hooks.MOST_BYTES)
    return Delivery(text.encode(), {name.lower(): value for name, value in headers.items()}, pairs)

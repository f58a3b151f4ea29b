"""The verbs of `unstuck signing` that need no database: make keys, list them, sign and verify submits in scripts."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from unstuck.chance import SystemChance, unguessable
from unstuck.cli import options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import settings_of, signing_of
from unstuck.clock import wall
from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_instant, decode, encode

if TYPE_CHECKING:
    from unstuck.signing import SigningKey, SigningKeys, StoredCall

Document = Annotated[
    str | None, Argument(metavar="FILE", help="the submit as HTTP takes it, as JSON; left out: from stdin")
]
Keys = Annotated[
    str | None, option("--keys", metavar="FILE", help="the signing keys  [UNSTUCK_SIGNING_KEYS; signing_keys]")
]
Life = Annotated[
    float | None, option("--expires", read=options.seconds, metavar="DURATION", help="how long it may be sent  [1d]")
]


_SHOWN = ("id", "algorithm", "tenant", "purposes", "holds", "state", "begin", "end")


def new_key(
    ident: Annotated[str, Argument(metavar="ID", help="how the key is named in signatures, e.g. shop-2026-11")],
    algorithm: Annotated[
        str, option("--algorithm", metavar="hmac-sha256|ed25519", help="ed25519: workers hold a public half only")
    ] = "hmac-sha256",
    tenant: Annotated[str | None, option("--tenant", metavar="NAME", help="whose jobs it signs  [all]")] = None,
    purpose: Annotated[
        list[str] | None,
        option("--purpose", metavar="submit|spawn|fire", help="what it signs; may be repeated  [submit]"),
    ] = None,
    begin: Annotated[
        datetime | None, option("--begin", read=options.instant, metavar="TIME", help="when it begins to sign")
    ] = None,
    end: Annotated[
        datetime | None, option("--end", read=options.instant, metavar="TIME", help="when it signs no more")
    ] = None,
    overlap: Annotated[
        float,
        option("--overlap", read=options.seconds, metavar="DURATION", help="how long after its end it verifies"),
    ] = 0.0,
) -> None:
    """Make a signing key and print it as its file has it. It is stored nowhere."""
    from unstuck.signing import EVERY_TENANT, SigningKey

    made = SigningKey(
        id=ident,
        algorithm=algorithm,  # type: ignore[arg-type]  # what is no algorithm is refused there, in words
        tenant=tenant or EVERY_TENANT,
        purposes=tuple(purpose or ["submit"]),  # type: ignore[arg-type]
        begin=begin,
        end=end,
        overlap=overlap,
        secret=unguessable(1 << 256).to_bytes(32, "big"),
    )
    if made.algorithm == "ed25519":
        output.say("# Who signs: the private half. Nobody else may read this.")
    else:
        output.say("# Who signs and who verifies: an hmac-sha256 key has no halves. Nobody else may read this.")
    output.say(_table(made))
    if made.algorithm == "ed25519":
        output.say("\n# Who only verifies, workers and servers: the public half.")
        output.say(_table(made.for_verifying()))


def keys(
    file: Keys = None,
    as_json: options.Json = False,
    app_name: options.AppName = None,
) -> None:
    """The signing keys of this process, without their secrets, and which of them signs now."""
    from unstuck.model.signing import PURPOSES

    found, now = _keys(file, app_name), wall()
    signing = {key.id for purpose in PURPOSES for key in _signers(found, purpose, now)}
    rows: list[dict[str, Any]] = [
        {
            "id": key.id,
            "algorithm": key.algorithm,
            "tenant": key.tenant,
            "purposes": list(key.purposes),
            "holds": _held(key),
            "state": _state(key, now, key.id in signing),
            "begin": output.rfc3339(key.begin),
            "end": output.rfc3339(key.end),
            "overlap": key.overlap,
        }
        for key in found
    ]
    if as_json:
        output.emit_json({"keys": rows, "required": sorted(map(str, found.required))})
        return
    output.table(
        ["KEY", "ALGORITHM", "TENANT", "PURPOSES", "HOLDS", "STATE", "BEGINS", "ENDS"],
        [tuple(row[name] if name != "purposes" else ", ".join(row[name]) for name in _SHOWN) for row in rows],
        empty="no signing keys; make one: unstuck signing new-key ID",
    )
    output.note(f"a signature is required: {', '.join(sorted(map(str, found.required))) or 'nowhere'}")


def sign(
    file: Document = None,
    key_file: Keys = None,
    expires: Life = None,
    tenant: options.Tenant = None,
) -> None:
    """Read a submit as HTTP takes it, and print it signed: the body of POST /api/v1/jobs. Nothing is sent."""
    from unstuck.model.signing import DEFAULT_LIFE, LONGEST_LIFE

    if expires is not None and not 0 < expires <= LONGEST_LIFE:
        raise InvalidInput(f"--expires {expires:g}: a signature lives {LONGEST_LIFE / 86400:g} days at most")
    found, whose, now = _keys(key_file), _tenant(tenant), wall()
    submit = _document(file)
    key = found.signer(whose, "submit", now)
    if key is None:
        raise InvalidInput(f"no signing key signs submits of tenant {whose} now; see: unstuck signing keys")
    call, policy = _call(submit, whose)
    envelope = found.sign(key, call, now, policy=policy, life=expires or DEFAULT_LIFE)
    rest = {name: value for name, value in submit.items() if name not in ("args", "kwargs", "policy", "at")}
    output.emit_json({**rest, "id": call.job, "payload": call.payload, "signature": envelope.facts()})


def verify(file: Document = None, key_file: Keys = None, tenant: options.Tenant = None) -> int:
    """Read a signed submit, and say whether its signature holds now, as a server with these keys would."""
    from unstuck.model.signing import envelope

    found, whose = _keys(key_file), _tenant(tenant)
    submit = _document(file)
    told = envelope(submit.get("signature"))
    call, _ = _call({**submit, "policy": decode(told.policy, "the signed policy") if told.policy else {}}, whose)
    problem = found.problem_at_door(replace(call, not_before=told.not_before), told, wall())
    if problem is not None:
        output.say(f"refused ({problem}): {problem.sentence}")
        return 1
    output.say(f"it holds: job {call.job} of tenant {whose}, by key {told.key}")
    return 0


# --- how ------------------------------------------------------------------------------------------------------------


def _keys(file: str | None, app_name: str | None = None) -> SigningKeys:
    return signing_of(settings_of({"signing_keys": file, "app": app_name}, ask_app=app_name is not None))


def _tenant(given: str | None) -> str:
    return settings_of({"tenant": given}).tenant


def _document(file: str | None) -> dict[str, Any]:
    try:
        if file is None or file == "-":
            text = sys.stdin.read()
        else:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file or 'stdin'} cannot be read: {error}") from None
    found = decode(text, "the submit")
    if not isinstance(found, dict) or not isinstance(found.get("workflow"), str):
        raise InvalidInput('a submit is an object like {"workflow": "charge", "queue": "default", "args": [1], …}')
    return found


def _call(submit: dict[str, Any], tenant: str) -> tuple[StoredCall, str]:
    """What is signed of it, and the text of its policy. Nothing is looked up: what a workflow's row would add must be
    said."""
    from unstuck.intake.submit import check_priority, job_id
    from unstuck.model.policy import Policy, said
    from unstuck.signing import StoredCall, micros

    workflow, policy = submit["workflow"], submit.get("policy") or {}
    for name, example, is_said in (
        ("queue", '"default"', isinstance(submit.get("queue"), str)),
        ("policy", '{"timeout": 600}', isinstance(policy, dict) and "timeout" in policy),
    ):
        if not is_said:
            raise InvalidInput(f'the submit does not say {name}, which is signed: add "{name}": {example}')
    if submit.get("delay") is not None:
        raise InvalidInput("a delay is not signed: say at, the time before which it may not start")
    start, payload = submit.get("at"), submit.get("payload")
    if payload is None:
        given = {"args": submit.get("args") or [], "kwargs": submit.get("kwargs") or {}}
        payload = encode(given, f"the arguments of {workflow}")
    if not isinstance(payload, str):
        raise InvalidInput(f"payload={quoted(payload)} is not text")
    call = StoredCall(
        job=SystemChance().job_id() if submit.get("id") is None else job_id(submit["id"]),
        tenant=tenant,
        workflow=workflow,
        queue=submit["queue"],
        target=submit.get("target"),
        priority=check_priority(submit.get("priority") or 0),
        payload=payload,
        policy=Policy().with_("the submit", policy),
        not_before=None if start is None else micros(check_instant(_instant(start), "at")),
    )
    return call, said(workflow, policy)


def _instant(text: Any) -> datetime:
    return options.instant(text) if isinstance(text, str) else text


def _signers(found: SigningKeys, purpose: Any, now: datetime) -> list[SigningKey]:
    tenants = {key.tenant for key in found}
    signers = [found.signer(tenant, purpose, now) for tenant in tenants]
    return [key for key in signers if key is not None]


def _held(key: SigningKey) -> str:
    if key.algorithm == "hmac-sha256":
        return "secret"
    return "public half" if key.secret is None else "private half"


def _state(key: SigningKey, now: datetime, signs: bool) -> str:
    if key.is_revoked:
        return "revoked"
    if key.begin is not None and now < key.begin:
        return "to come"
    if key.end is not None and now >= key.end:
        return "verifies" if (now - key.end).total_seconds() < key.overlap else "ended"
    return "signs" if signs else "verifies"


def _table(key: SigningKey) -> str:
    lines = ["[[key]]", f"id = {json.dumps(key.id)}", f"algorithm = {json.dumps(key.algorithm)}"]
    lines += [f"tenant = {json.dumps(key.tenant)}", f"purposes = {json.dumps(list(key.purposes))}"]
    lines += [f"{name} = {at.isoformat()}" for name, at in (("begin", key.begin), ("end", key.end)) if at is not None]
    if key.overlap:
        lines.append(f"overlap = {key.overlap:g}")
    secret = "secret" if key.algorithm == "hmac-sha256" else "private"
    for name, half in ((secret, key.secret), ("public", key.public)):
        if half is not None:
            lines.append(f"{name} = {json.dumps(base64.b64encode(half).decode())}")
    return "\n".join(lines)

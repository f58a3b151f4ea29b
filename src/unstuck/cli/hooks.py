"""unstuck hooks …: webhooks in, other systems' calls that start a workflow."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput
from unstuck.model.payload import decode
from unstuck.model.spelling import about
from unstuck.operations import hooks
from unstuck.records import dataclass
from unstuck.views.hooks import HookView, NewHookView

app = options.group(
    "Webhooks in: other systems' calls that start a workflow, at POST /hooks/ID of a server.", default="list"
)

Name = Annotated[str, Argument(metavar="NAME", help="of the hook, or its id")]
Limit = Annotated[int, options.rows(1000)]


@dataclass(frozen=True)
class HookFlags:
    """What is not said stays as it stands, or is as by default."""

    map: Annotated[
        list[str] | None,
        option(
            "--map",
            metavar="NAME=SOURCE",
            help="an argument: body, body.PATH, header.NAME, query.NAME, raw, delivery, or JSON with from, default "
            "or value; may be repeated",
        ),
    ] = None
    signature: Annotated[
        str | None, option("--signature", metavar="JSON", help="of the scheme hmac: header, prefix, signed, …")
    ] = None
    queue: Annotated[str | None, option("--queue", metavar="NAME", help="instead of the workflow's own")] = None
    priority: Annotated[int | None, option("--priority", help="higher goes first")] = None
    target: Annotated[
        str | None, option("--target", metavar="NAME", help="whose jobs run one at a time, instead of the workflow's")
    ] = None
    tag: Annotated[list[str] | None, option("--tag", metavar="TAG", help="to find its jobs by; may be repeated")] = (
        None
    )
    max_bytes: Annotated[int | None, option("--max-bytes", metavar="N", help="of a body (1048576)")] = None

    def given(self) -> dict[str, Any]:
        said: dict[str, Any] = {name: getattr(self, name) for name in ("queue", "priority", "target", "max_bytes")}
        said["tags"] = self.tag
        said["arguments"] = None if self.map is None else dict(map(_mapped, self.map))
        said["signature"] = None if self.signature is None else decode(self.signature, "--signature")
        return {name: value for name, value in said.items() if value is not None}


def _mapped(text: str) -> tuple[str, Any]:
    name, sign, source = text.partition("=")
    if not sign or not name or not source:
        raise InvalidInput(f"--map {text!r} is not NAME=SOURCE, like repo=body.repository.full_name")
    return name, decode(source, f"--map {name}") if source.startswith(("{", "[")) else source


@app.command("list")
def list_(limit: Limit = 50, after: options.AfterNumber = None, *, common: options.Common) -> None:
    """All there are: what each starts, and where its deliveries go."""
    with opened(common) as session:
        page = hooks.list_(session.caller, after=after, limit=limit)
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NAME", "WORKFLOW", "SCHEME", "STATE", "PATH"],
        [(h.name, h.workflow, h.scheme, _state(h), h.path) for h in page],
        empty="no hooks; make one: unstuck hooks create NAME WORKFLOW --scheme github --map repo=body.repo",
    )
    output.tell_next(page)


@app.command()
def show(name: Name, *, common: options.Common) -> None:
    """One hook: its address, what it starts, how its deliveries are signed."""
    with opened(common) as session:
        view, now = hooks.get(session.caller, name), session.now()
    _print(view, now, common.json)


@app.command()
def create(
    name: Annotated[str, Argument(metavar="NAME", help="of the hook")],
    workflow: Annotated[str, Argument(metavar="WORKFLOW", help="what it starts")],
    scheme: Annotated[
        str, option("--scheme", metavar="SCHEME", help="how it is signed: standard, github, stripe or hmac")
    ] = "standard",
    secret_file: options.SecretFile = None,
    by: options.By = None,
    *,
    flags: HookFlags,
    common: options.Common,
) -> None:
    """Let another system start a workflow. The secret is printed this once."""
    with opened(common) as session:
        caller = session.caller.about(by=by)
        secret = options.secret_in(secret_file)
        view = hooks.create(caller, name, workflow, scheme=scheme, secret=secret, **flags.given())  # type: ignore[arg-type]
        now = session.now()
    _print_made(view, now, common.json)


@app.command()
def update(
    name: Name,
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="what it starts")] = None,
    by: options.By = None,
    *,
    flags: HookFlags,
    common: options.Common,
) -> None:
    """Change a hook; what is not said stays. A --map replaces all there were."""
    said = flags.given() | ({} if workflow is None else {"workflow": workflow})
    with opened(common) as session:
        view, now = hooks.update(session.caller.about(by=by), name, **said), session.now()
    _print(view, now, common.json)


@app.command()
def rotate(
    name: Name,
    overlap: Annotated[
        float,
        option("--overlap", read=options.seconds, metavar="DURATION", help="so long the old secret is accepted too"),
    ] = hooks.OVERLAP,
    secret_file: options.SecretFile = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Give it another secret, which is printed this once."""
    with opened(common) as session:
        caller = session.caller.about(by=by)
        view, now = hooks.rotate(caller, name, secret=options.secret_in(secret_file), overlap=overlap), session.now()
    _print_made(view, now, common.json)


@app.command()
def pause(
    name: Name,
    reason: Annotated[str | None, option("--reason", metavar="TEXT", help="for those who look")] = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Accept no delivery until it is resumed; senders are told to come again."""
    with opened(common) as session:
        view = hooks.pause(session.caller.about(by=by), name, reason=reason)
    if common.json:
        output.emit_view(view)
        return
    output.say(f"hook {view.name} is {output.styled('paused', 'yellow')}")
    output.note(f"let it go on: {about('unstuck hooks resume', view.name)}")


@app.command()
def resume(name: Name, by: options.By = None, *, common: options.Common) -> None:
    """Accept deliveries again."""
    with opened(common) as session:
        view = hooks.resume(session.caller.about(by=by), name)
    if common.json:
        output.emit_view(view)
    else:
        output.say(f"hook {view.name} accepts deliveries")


@app.command()
def delete(name: Name, by: options.By = None, *, common: options.Common) -> None:
    """Answer at its address no more, and forget its secret. Its jobs stay."""
    with opened(common) as session:
        view = hooks.delete(session.caller.about(by=by), name)
    if common.json:
        output.emit_view(view)
    else:
        output.say(f"hook {view.name} is deleted")


@app.command()
def deliveries(
    name: Name,
    outcome: Annotated[str | None, option("--outcome", metavar="OUTCOME", help="accepted or refused")] = None,
    limit: Limit = 50,
    after: options.AfterNumber = None,
    *,
    common: options.Common,
) -> None:
    """What was done about each delivery, the newest first: the job, or why there is none."""
    if outcome not in (None, "accepted", "refused"):
        raise InvalidInput(f"--outcome {outcome!r} is not one of accepted, refused")
    with opened(common) as session:
        page = hooks.deliveries(session.caller, name, outcome=outcome, after=after, limit=limit)  # type: ignore[arg-type]
        now = session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NUMBER", "AT", "OUTCOME", "STATUS", "CALLS", "DELIVERY", "JOB", "REASON"],
        [
            (
                d.number,
                output.age(d.at, now),
                d.outcome,
                d.status,
                d.calls,
                output.visible(d.delivery) if d.delivery else None,
                d.job,
                f"{d.problem}: {output.visible(d.reason or '')}" if d.problem else None,
            )
            for d in page
        ],
        empty="none yet",
    )
    output.tell_next(page)


@app.command("dry-run")
def dry_run(
    name: Name,
    body: Annotated[
        str | None, option("--body", metavar="TEXT", help="as it comes; @FILE reads it from there, @- from stdin")
    ] = None,
    header: Annotated[
        list[str] | None, option("--header", metavar="NAME:VALUE", help="of the delivery; may be repeated")
    ] = None,
    query: Annotated[
        list[str] | None, option("--query", metavar="NAME=VALUE", help="of its address; may be repeated")
    ] = None,
    *,
    common: options.Common,
) -> int:
    """What would become of such a delivery: its arguments, or why it is refused. Nothing is stored."""
    headers = dict(_pair(text, ":", "--header") for text in header or ())
    asked = dict(_pair(text, "=", "--query") for text in query or ())
    with opened(common) as session:
        view = hooks.dry_run(session.caller, name, body=_body(body), headers=headers, query=asked)
    if common.json:
        output.emit_view(view)
        return 0 if view.accepted else 1
    if view.arguments is not None:
        for argument, value in view.arguments.items():
            output.say(f"{argument} = {output.visible(repr(value))}")
    if view.signed is None:
        output.note("it carries no signature: that was not checked")
    if not view.accepted:
        output.say(f"refused ({view.problem}): {output.visible(view.reason or '')}")
    return 0 if view.accepted else 1


def _pair(text: str, sign: str, what: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise InvalidInput(f"{what} {text!r} is not NAME{sign}VALUE")
    return name.strip(), value.strip() if sign == ":" else value


def _body(given: str | None) -> str:
    return "" if given is None else options.text_in(given[1:]) if given.startswith("@") else given


def _state(view: HookView) -> str:
    return "PAUSED" if view.paused else "ACTIVE"


def _print_made(view: NewHookView, now: datetime, as_json: bool) -> None:
    _print(view, now, as_json)
    if not as_json:
        output.say(f"  secret   {view.secret}")
        output.note("give the secret to the sender now: it is shown this once")


def _print(view: HookView, now: datetime, as_json: bool) -> None:
    if as_json:
        output.emit_view(view)
        return
    output.say(f"hook {view.name}: {view.scheme} → {view.workflow}  {_state(view)}")
    output.say(f"  path     POST {view.path}")
    for name, source in view.arguments.items():
        output.say(f"  {name:<8} {output.visible(str(source))}")
    for secret in view.secrets:
        until = "in use" if secret.until is None else f"accepted until {output.rfc3339(secret.until)}"
        sealed = "" if view.sealed else ", in clear text"
        output.say(f"  secret   since {output.rfc3339(secret.since)}: {until}{sealed}")
    if view.paused_at is not None:
        why = f": {output.visible(view.pause_reason)}" if view.pause_reason else ""
        output.say(f"  paused   {output.age(view.paused_at, now)} by {output.visible(view.paused_by or '')}{why}")
    output.say(f"  made by  {output.visible(view.created_by)}, version {view.version}")

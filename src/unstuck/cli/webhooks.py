"""unstuck webhooks …: what happens, sent to a URL."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput
from unstuck.model.spelling import about
from unstuck.model.webhooks import WebhookState
from unstuck.operations import webhooks
from unstuck.records import dataclass
from unstuck.store.port import EVERY
from unstuck.views.webhooks import NewWebhookView, WebhookView

app = options.group(
    "Webhooks: events of the feed, sent to a URL as they happen, signed. Of the platform: --tenant '*'.",
    default="list",
)

Name = Annotated[str, Argument(metavar="NAME", help="of the webhook")]
Reason = Annotated[str | None, option("--reason", metavar="TEXT", help="for whoever looks at it")]


@dataclass(frozen=True)
class FilterFlags:
    """Which events; what is not said stays as it stands, or means all."""

    kind: Annotated[
        list[str] | None, option("--kind", metavar="KIND", help="of events, e.g. completed; may be repeated")
    ] = None
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only about its jobs")] = None
    queue: Annotated[str | None, option("--queue", "-q", metavar="NAME", help="only about its jobs")] = None
    target: Annotated[str | None, option("--target", metavar="NAME", help="only about this one")] = None
    topic: Annotated[str | None, option("--topic", metavar="NAME", help="only what is published under it")] = None
    job: Annotated[str | None, option("--job", metavar="JOB", help="only about this one")] = None

    def given(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in ("workflow", "queue", "target", "topic", "job")}
        said["kinds"] = self.kind
        return {name: value for name, value in said.items() if value is not None}


@app.command("list")
def list_(
    limit: Annotated[int, options.rows(1000)] = 50, after: options.AfterNumber = None, *, common: options.Common
) -> None:
    """All there are: where they go, whether their receivers take it, what waits."""
    with opened(common) as session:
        page, now = webhooks.list_(session.caller, after=after, limit=limit), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NAME", "STATE", "URL", "KINDS", "WAITING", "TAKEN", "LAST"],
        [
            (
                w.name,
                w.state,
                output.visible(w.url),
                ", ".join(w.kinds) or "all",
                _waiting(w),
                output.age(w.taken_at, now) if w.taken_at else None,
                output.visible(w.last_error) if w.last_error else w.last_status,
            )
            for w in page
        ],
        empty="no webhooks; make one: unstuck webhooks create NAME URL --kind completed",
    )
    output.tell_next(page)


@app.command()
def show(name: Name, *, common: options.Common) -> None:
    """One webhook: where it goes, what is sent there, what waits, whether its receiver takes it."""
    with opened(common) as session:
        view, now = webhooks.get(session.caller, name), session.now()
    _print(view, now, common.json)


@app.command()
def create(
    name: Name,
    url: Annotated[str, Argument(metavar="URL", help="https://…")],
    secret_file: options.SecretFile = None,
    by: options.By = None,
    *,
    flags: FilterFlags,
    common: options.Common,
) -> None:
    """Send what happens from now on to a URL. Its secret is shown once."""
    with opened(common) as session:
        view = webhooks.create(
            session.caller.about(by=by), name, url, secret=options.secret_in(secret_file), **flags.given()
        )
    _print_new(view, common.json)


@app.command()
def update(
    name: Name,
    url: Annotated[str | None, option("--url", metavar="URL", help="where it goes from now on")] = None,
    all_kinds: Annotated[bool, option("--all-kinds", help="events of every kind again")] = False,
    by: options.By = None,
    *,
    flags: FilterFlags,
    common: options.Common,
) -> None:
    """Change where it goes, or what is sent; what is not said stays. An empty text takes a condition away."""
    said: dict[str, Any] = {name: value or None for name, value in flags.given().items()}
    if url is not None:
        said["url"] = url
    if all_kinds:
        said["kinds"] = ()
    with opened(common) as session:
        view, now = webhooks.update(session.caller.about(by=by), name, **said), session.now()
    _print(view, now, common.json)


@app.command()
def rotate(
    name: Name,
    overlap: Annotated[
        float,
        option("--overlap", read=options.seconds, metavar="DURATION", help="how long the old one signs too  [1d]"),
    ] = webhooks.OVERLAP,
    secret_file: options.SecretFile = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """A new secret, shown once; the old one signs beside it for a while."""
    with opened(common) as session:
        view = webhooks.rotate(
            session.caller.about(by=by), name, overlap=overlap, secret=options.secret_in(secret_file)
        )
    _print_new(view, common.json)


@app.command()
def pause(name: Name, reason: Reason = None, by: options.By = None, *, common: options.Common) -> None:
    """Send nothing for now; what happens meanwhile waits."""
    with opened(common) as session:
        view = webhooks.pause(session.caller.about(by=by), name, reason=reason)
    _say(view, common.json, f"webhook {view.name} is {output.styled('paused', 'yellow')}")


@app.command()
def enable(name: Name, by: options.By = None, *, common: options.Common) -> None:
    """Send again, and at once: what waits, and what happens from now on."""
    with opened(common) as session:
        view = webhooks.enable(session.caller.about(by=by), name)
    _say(view, common.json, f"webhook {view.name} is active; {_waiting(view)} waiting")


@app.command()
def disable(name: Name, reason: Reason = None, by: options.By = None, *, common: options.Common) -> None:
    """Send nothing any more. What waits stays; what happens from now on is not kept for it."""
    with opened(common) as session:
        view = webhooks.disable(session.caller.about(by=by), name, reason=reason)
    _say(view, common.json, f"webhook {view.name} is {output.styled('disabled', 'red')}")


@app.command()
def test(name: Name, by: options.By = None, *, common: options.Common) -> None:  # noqa: PT028
    """Send a test, signed like all others."""
    with opened(common) as session:
        view = webhooks.test(session.caller.about(by=by), name)
    if common.json:
        output.emit_view(view)
        return
    output.say(str(view.number))
    output.note(f"a worker or server sends it; what came of it: unstuck deliveries show {view.number}")


@app.command()
def replay(
    name: Name,
    since: Annotated[
        datetime | None,
        option(
            "--since", read=options.instant, metavar="TIME", help="all that happened since, e.g. 2030-01-01T00:00:00Z"
        ),
    ] = None,
    after: Annotated[
        str | None, option("--after", metavar="CURSOR", help="all behind this event of the feed")
    ] = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Send once more what happened since then, each under the id that it had."""
    if (since is None) == (after is None):
        raise InvalidInput("say from when: --since TIME, or --after CURSOR")
    with opened(common) as session:
        view = webhooks.replay(session.caller.about(by=by), name, since=since, after=after)
    if common.json:
        output.emit_view(view)
        return
    output.say(f"webhook {view.name} is sent again what is in the feed, and {view.reopened:,} older deliveries")
    if view.has_more:
        output.note("there are more older ones: ask again once these are delivered")


@app.command()
def delete(name: Name, by: options.By = None, *, common: options.Common) -> None:
    """Send nothing there any more, and forget it with all its deliveries."""
    with opened(common) as session:
        view = webhooks.delete(session.caller.about(by=by), name)
    _say(view, common.json, f"webhook {view.name} is deleted")


def _say(view: WebhookView, as_json: bool, text: str) -> None:
    if as_json:
        output.emit_view(view)
    else:
        output.say(text)


def _waiting(view: WebhookView) -> str:
    return f"{view.waiting:,}" + ("+" if view.waiting >= 10_000 else "")


def _print_new(view: NewWebhookView, as_json: bool) -> None:
    if as_json:
        output.emit_view(view)
        return
    output.say(view.secret)
    output.note(
        f"keep it now, for the receiver: it is shown this once. Try it: {about('unstuck webhooks test', view.name)}"
    )
    if not view.sealed:
        output.note("it is kept as it is: whoever reads the database can sign; set sealing_keys to have it sealed")


def _print(view: WebhookView, now: datetime, as_json: bool) -> None:
    if as_json:
        output.emit_view(view)
        return
    whose = "all tenants" if view.tenant == EVERY else f"tenant {view.tenant}"
    output.say(f"webhook {view.name} of {output.visible(whose)} is {view.state}: {output.visible(view.url)}")
    said = {name: getattr(view, name) for name in ("workflow", "queue", "target", "topic", "job")}
    chosen = [f"{name} {value}" for name, value in said.items() if value is not None]
    output.say(f"  sends    {output.visible(', '.join([', '.join(view.kinds) or 'every kind', *chosen]))}")
    since = f", the oldest {output.age(view.waiting_since_at, now)}" if view.waiting_since_at else ""
    output.say(f"  waiting  {_waiting(view)}{since}")
    if view.taken_at is not None:
        output.say(f"  taken    {output.age(view.taken_at, now)}")
    if view.failures:
        rest = f"; next try {output.age(view.rest_until_at, now)}" if view.rest_until_at else ""
        since = f" since {output.rfc3339(view.failing_since_at)}"
        output.say(f"  fails    {view.failures:,} in a row{since}: {output.visible(view.last_error or '')}{rest}")
    if view.state is not WebhookState.ACTIVE:
        why = f": {output.visible(view.state_reason)}" if view.state_reason else ""
        output.say(f"  since    {output.age(view.state_at, now)} by {output.visible(view.state_by)}{why}")
    sealed = "sealed" if view.sealed else "kept as it is"
    until = (
        f"; the one before signs until {output.rfc3339(view.old_secret_until_at)}" if view.old_secret_until_at else ""
    )
    output.say(f"  secret   {sealed}{until}")
    output.say(
        f"  made     {output.age(view.created_at, now)} by {output.visible(view.created_by)}, version {view.version}"
    )

"""unstuck alerts …: what is wrong now, and what was."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.operations import alerts
from unstuck.views.alerts import AlertView

app = options.group("Alerts: what is wrong now, opened and closed by themselves.", default="list")

Number = Annotated[str, Argument(metavar="NUMBER", help="of the alert, as the list shows it")]


@app.command("list")
def list_(
    all_: Annotated[bool, option("--all", help="also those that are over")] = False,
    rule: Annotated[str | None, option("--rule", "-r", metavar="NAME", help="only of this rule")] = None,
    limit: Annotated[int, options.rows(10_000)] = 50,
    after: options.AfterNumber = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """What is wrong now, the newest first."""
    with opened(common) as session:
        page = alerts.list_(session.caller, closed=all_, rule=rule, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NUMBER", "OPENED", "STATE", "SEVERITY", "RULE", "TENANT", "MESSAGE"],
        [
            (
                each.number,
                output.age(each.opened_at, now),
                _state(each, now),
                each.severity,
                each.rule,
                each.tenant,
                each.message,
            )
            for each in page
        ],
        empty="no alerts" if all_ else "nothing is wrong",
    )
    output.tell_next(page)


@app.command()
def show(number: Number, *, common: options.CommonOneTenant) -> None:
    """One alert."""
    with opened(common) as session:
        found, now = alerts.get(session.caller, _number(number)), session.now()
    if common.json:
        output.emit_view(found)
    else:
        _print(found, now)


@app.command()
def ack(number: Number, by: options.By = None, *, common: options.CommonOneTenant) -> None:
    """Take note of one, so that others need not. It stays open until its trouble is over."""
    with opened(common) as session:
        found = alerts.ack(session.caller.about(by=by), _number(number))
    if common.json:
        output.emit_view(found)
    else:
        output.say(
            f"alert {found.number} ({found.rule}: {found.subject}) was noted by "
            f"{output.visible(found.acked_by or '?')}"
        )


@app.command()
def mute(
    number: Number,
    lasts: Annotated[
        float, option("--for", read=options.seconds, metavar="DURATION", help="how long, e.g. 8h; an hour by default")
    ] = 3600.0,
    by: options.By = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """Let nobody be told of this trouble for a time, also if it ends and comes again."""
    with opened(common) as session:
        found = alerts.mute(session.caller.about(by=by), _number(number), lasts=lasts)
    if common.json:
        output.emit_view(found)
    else:
        until = output.rfc3339(found.muted_until) if found.muted_until else "?"
        output.say(f"alert {found.number} ({found.rule}: {found.subject}) is muted until {until}")


@app.command()
def unmute(number: Number, by: options.By = None, *, common: options.CommonOneTenant) -> None:
    """Let it be told again."""
    with opened(common) as session:
        found = alerts.unmute(session.caller.about(by=by), _number(number))
    if common.json:
        output.emit_view(found)
    else:
        output.say(f"alert {found.number} ({found.rule}: {found.subject}) is no longer muted")


@app.command()
def rules(*, common: options.CommonPlatform) -> None:
    """The rules, their numbers, and which of them fail. Change one: unstuck settings set NAME VALUE."""
    with opened(common) as session:
        page, now = alerts.rules(session.caller), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["RULE", "SETTING", "VALUE", "OPEN", "LOOKED", "TROUBLE"],
        [
            (
                each.rule,
                each.setting,
                "off" if each.value == 0 else f"{each.value:g}",
                each.open,
                output.age(each.looked_at, now) if each.looked_at else "never",
                each.error,
            )
            for each in page
        ],
        empty="no rules",
    )


def _number(number: str) -> int:
    return gates.whole_number(number, "the alert")


def _state(alert: AlertView, now: datetime) -> str:
    if alert.closed_at is not None:
        return f"over {output.age(alert.closed_at, now)}"
    if alert.muted_until is not None and alert.muted_until > now:
        return "muted"
    return "noted" if alert.acked_at is not None else "open"


def _print(alert: AlertView, now: datetime) -> None:
    output.say(f"{output.styled(alert.title, 'bold')}  {alert.number}")
    for label, value in (
        ("state", _state(alert, now)),
        ("severity", alert.severity),
        ("rule", alert.rule),
        ("message", alert.message),
        ("subject", alert.subject),
        ("tenant", alert.tenant),
        ("workflow", alert.workflow or None),
        ("opened", f"{output.rfc3339(alert.opened_at)} ({output.age(alert.opened_at, now)})"),
        ("seen", f"{output.rfc3339(alert.seen_at)} ({output.age(alert.seen_at, now)})"),
        ("over", None if alert.closed_at is None else output.rfc3339(alert.closed_at)),
        ("noted by", alert.acked_by),
        (
            "muted",
            None if alert.muted_until is None else f"until {output.rfc3339(alert.muted_until)} by {alert.muted_by}",
        ),
    ):
        if value is not None:
            output.say(f"  {label:<10} {output.indented(output.visible(str(value)), 13)}")

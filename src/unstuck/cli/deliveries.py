"""unstuck deliveries …: what was sent to webhooks."""

from __future__ import annotations

import json
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.operations import deliveries

app = options.group("Deliveries: what is sent to webhooks, and what came of each try.", default="list")


@app.command("list")
def list_(
    webhook: Annotated[str | None, option("--webhook", metavar="NAME", help="of this one")] = None,
    state: Annotated[str | None, option("--state", metavar="STATE", help="waiting, delivered or failed")] = None,
    job: Annotated[str | None, option("--job", metavar="JOB", help="about this one, by its whole id")] = None,
    limit: Annotated[int, options.rows(1000)] = 50,
    after: options.AfterNumber = None,
    *,
    common: options.Common,
) -> None:
    """What was sent, is to be sent, or was given up, the newest first."""
    with opened(common) as session:
        page = deliveries.list_(session.caller, webhook=webhook, state=state, job=job, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NUMBER", "WEBHOOK", "KIND", "JOB", "STATE", "TRIES", "HAPPENED", "NEXT", "LAST"],
        [
            (
                d.number,
                d.webhook,
                d.kind,
                d.job,
                d.state,
                d.tries,
                output.age(d.happened_at, now),
                output.age(d.next_at, now) if d.next_at else None,
                output.visible(d.last_error) if d.last_error else d.last_status,
            )
            for d in page
        ],
        empty="none; webhooks are sent what happens once there are some: unstuck webhooks",
    )
    output.tell_next(page)


@app.command()
def show(
    number: Annotated[str, Argument(metavar="NUMBER", help="as the list shows it")], *, common: options.Common
) -> None:
    """One delivery: what is sent, and what came of each try."""
    wanted = gates.whole_number(number, "the delivery")
    with opened(common) as session:
        view, now = deliveries.get(session.caller, wanted), session.now()
    if common.json:
        output.emit_view(view)
        return
    rests = ", until then its webhook rests" if view.rest_until_at else ""
    ahead = f"; next try {output.age(view.next_at, now)}{rests}" if view.next_at else ""
    output.say(f"delivery {view.number} of {view.kind} to {view.webhook} is {view.state}{ahead}")
    output.say(f"  id       {view.message}")
    for place, attempt in enumerate(view.attempts, view.tries - len(view.attempts) + 1):
        took = "" if attempt.took_ms is None else f" ({attempt.took_ms:,} ms)"
        said = attempt.error or f"it answered {attempt.status}"
        output.say(f"  try {place:<4} {output.rfc3339(attempt.at)}  {output.visible(said)}{took}")
        if attempt.excerpt:
            output.say(f"           {output.visible(attempt.excerpt)}")
    output.say(f"  body     {output.visible(json.dumps(view.body, ensure_ascii=False))}")

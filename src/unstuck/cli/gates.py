"""Pauses and limits as every noun of the command line spells them: options, verbs and words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import options, output, parser, shapes
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import InvalidInput, quoted, told
from unstuck.model.spelling import about, given
from unstuck.store.port import BY_CODE, EVERY, Limit, LimitKind, Pause, PauseKind

AllTenants = Annotated[bool, option("--all-tenants", help="for every tenant, not only this one")]
Together = Annotated[bool, option("--all-tenants", help="counts all tenants together, not only this one")]
FEW = 5


@dataclass(frozen=True)
class PauseFlags:
    for_: Annotated[
        float | None, option("--for", read=options.seconds, metavar="DURATION", help="ends by itself after, e.g. 30m")
    ] = None
    until: Annotated[
        str | None, option("--until", metavar="TIME", help='ends by itself at: RFC 3339, or "in 2h"')
    ] = None  # fmt: skip
    reason: Annotated[
        str | None, option("--reason", metavar="TEXT", help="why, for those who ask `unstuck why`")
    ] = None  # fmt: skip


@dataclass(frozen=True)
class LimitFlags:
    """What is not said stays as it stands."""

    concurrency: Annotated[
        str | None, option("--concurrency", "-c", metavar="N|none", help="maximum jobs that run at once")
    ] = None
    rate: Annotated[
        str | None,
        option("--rate", "-r", metavar="N/TIME|none", help="maximum jobs that start in a time, e.g. 100/m"),
    ] = None
    none: Annotated[bool, option("--none", help="no limit at all any more")] = False

    def changes(self) -> dict[str, Any]:
        """Of those that are said; None lifts one."""
        found: dict[str, Any] = {}
        if self.concurrency is not None:
            found["concurrency"] = _number(self.concurrency, "--concurrency")
        if self.rate is not None:
            found["rate"] = None if self.rate == "none" else self.rate
        return found


@dataclass(frozen=True)
class QueueLimitFlags(LimitFlags):
    max_queued: Annotated[
        str | None, option("--max-queued", metavar="N|none", help="maximum jobs that wait; more are refused")
    ] = None

    def changes(self) -> dict[str, Any]:
        queued = {} if self.max_queued is None else {"max_queued": _number(self.max_queued, "--max-queued")}
        return super().changes() | queued


@dataclass(frozen=True, slots=True)
class Where:
    """Whose, in which database, and how to answer."""

    common: options.CommonPlatform
    all_tenants: bool = False

    def __post_init__(self) -> None:
        options.check_whose(self.all_tenants, self.common)

    @property
    def whose(self) -> str | None:
        return EVERY if self.all_tenants else None

    def flags(self, session: Session) -> str:
        """What a command about the same place must say besides."""
        if self.all_tenants:
            return "--all-tenants"
        return given("--tenant", session.tenant) if self.common.flags.get("tenant") else ""


# --- verbs --------------------------------------------------------------------------------------------------------


def pause(kind: PauseKind, name: str, flags: PauseFlags, where: Where) -> None:
    if flags.for_ is not None and flags.until is not None:
        raise InvalidInput("--for and --until exclude each other")
    lasting, instant = (flags.for_, None) if flags.until is None else end_of(flags.until)
    with opened(where.common) as session:
        set_ = session.gates.pause(
            kind, name, tenant=where.whose, lasting=lasting, until=instant, reason=flags.reason
        )
        warn_if_unheard_of(session, kind, name)
        if where.common.json:
            output.emit_json(shapes.pause(set_))
            return
        output.say(f"{kind} {name} is {output.styled('paused', 'yellow')} {_end(set_, session.now())}")
        output.note(
            "nothing new starts there, what runs goes on; "
            f"lift it: {about(f'unstuck {kind}s unpause', name, _flags(kind, where, session))}"
        )


def unpause(kind: PauseKind, name: str, where: Where) -> None:
    with opened(where.common) as session:
        lifted = session.gates.unpause(kind, name, tenant=where.whose)
        left = _still_paused(session, kind, name)
        if where.common.json:
            output.emit_json({"kind": kind, "name": name, "lifted": lifted, "left": [shapes.pause(p) for p in left]})
            return
        if lifted and not left:
            output.say(f"{kind} {name} goes on")
        elif lifted:
            output.say(f"{kind} {name}: the pause is lifted")
        else:
            output.note(f"{kind} {name} was not paused{'' if not left else ' there'}")
        for other in left:
            whose = "for every tenant: add --all-tenants" if other.tenant == EVERY else f"for tenant {other.tenant}"
            output.note(f"it is still paused {whose}")


def limit(kind: LimitKind, name: str, flags: LimitFlags, where: Where) -> None:
    changes = flags.changes()
    if flags.none == bool(changes):
        raise InvalidInput("say --concurrency, --rate or --max-queued, or --none to lift the limit")
    with opened(where.common) as session:
        before = _standing(session, kind, name, where)
        if flags.none:
            session.gates.unlimit(kind, name, tenant=where.whose)
            now = _standing(session, kind, name, where)
        else:
            now = session.gates.change_limit(kind, name, tenant=where.whose, **changes)
        warn_if_unheard_of(session, "workflow" if kind == "workflow_key" else kind, name)
        _print_limit(kind, name, before, now, where)


def _print_limit(kind: LimitKind, name: str, before: Limit | None, now: Limit | None, where: Where) -> None:
    if where.common.json:
        output.emit_json({"kind": kind, "name": name, "limit": shapes.limit(now) if now else None})
        return
    limited = f"{'each key of workflow' if kind == 'workflow_key' else kind} {name}"
    if now is not None:
        output.say(f"{limited}: {limit_text(now)}")
        if now.by == BY_CODE:
            output.note("so says its code: that cannot be lifted here, but another limit can be set in its place")
    elif before is None:
        output.note(f"{limited} had no limit")
    else:
        output.say(f"{limited}: no limit any more")


def _standing(session: Session, kind: LimitKind, name: str, where: Where) -> Limit | None:
    owner = name if kind == "tenant" else (where.whose or session.tenant)
    found = session.gates.limits(tenant=EVERY)
    return next((x for x in found if (x.kind, x.name, x.tenant) == (kind, name, owner)), None)


def _still_paused(session: Session, kind: PauseKind, name: str) -> list[Pause]:
    return [p for p in session.gates.pauses() if (p.kind, p.name) == (kind, name)]


def _flags(kind: str, where: Where, session: Session) -> str:
    return "" if kind == "tenant" else where.flags(session)


# --- what words mean ----------------------------------------------------------------------------------------------


def end_of(text: str) -> tuple[float | None, datetime | None]:
    """ "in 2h" is a time from now by the database's clock, anything else an instant with its zone."""
    words = text.strip()
    if words.lower().startswith("in "):
        return options.seconds(words[3:]), None
    try:
        instant = datetime.fromisoformat(words)
    except ValueError:
        raise InvalidInput(
            f'--until {quoted(text)} is neither a time like 2030-01-31T18:00:00Z nor a duration like "in 2h"'
        ) from None
    if instant.tzinfo is None:
        whole = instant.isoformat()
        raise InvalidInput(
            f"--until {quoted(text)} does not say in which zone; write {whole}Z for UTC, or {whole}+02:00"
        )
    return None, instant


def _number(word: str, name: str) -> int | None:
    return None if word == "none" else whole_number(word, name)


def whole_number(word: str, name: str) -> int:
    try:
        return parser.whole_number(word)
    except ValueError:
        raise InvalidInput(f"{name} {quoted(word)} is not a whole number") from None


def warn_if_unheard_of(session: Session, kind: str, name: str) -> None:
    """Allowed, since it may be set before the first job comes; but most often it is a typing error."""
    known = names_of(session, kind, name)
    if known is None or name in known:
        return
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1) or (sorted(known) if len(known) <= FEW else [])
    hint = f"; known: {', '.join(close)}" if close else ""
    output.note(f"nobody has used {kind} {told(name)} so far{hint}")


def names_of(session: Session, kind: str, like: str = "") -> set[str] | None:
    """The names of a kind that are known and cheap to list; None where nothing can be said."""
    match kind:
        case "workflow":
            return {w.name for w in session.store.workflows()}
        case "queue":
            return queue_names(session)
        case "tenant" if like != EVERY:
            near = {t.name for t in session.gates.tenants(limit=1000)}
            return near | ({like} if session.store.tenant(like) else set()) | {"default"}
        case _:
            return None


def queue_names(session: Session) -> set[str]:
    """Those that workflows and workers name, and where this tenant has had jobs."""
    named = {w.queue for w in session.store.workflows()}
    for worker, _ in session.workers():
        named |= {*worker.queues, *worker.serves.get("queues", ())}
    return named | {tally.name for tally in session.store.tallies("queue", session.tenant, limit=100, ceiling=1)}


# --- words for people ---------------------------------------------------------------------------------------------


def pause_text(pauses: Iterable[Pause], now: datetime) -> str | None:
    """Short, for a column: who, and until when."""
    return "; ".join(f"by {output.visible(p.by)}, {_end(p, now)}" for p in pauses) or None


def _end(pause: Pause, now: datetime) -> str:
    everywhere = "for every tenant " if pause.tenant == EVERY else ""
    if pause.until_at is None:
        return f"{everywhere}until somebody lifts it"
    return f"{everywhere}until {output.rfc3339(pause.until_at)} ({output.age(pause.until_at, now)})"


def limit_text(limit: Limit) -> str:
    """5 at once, 100 starts per 1m, at most 1,000 waiting."""
    parts = []
    if limit.concurrency is not None:
        parts.append(f"{limit.concurrency:,} at once")
    if limit.rate is not None:
        parts.append(f"{output.count(limit.rate, 'start')} per {_period(limit.per or 1.0)}")
    if limit.max_queued is not None:
        parts.append(f"at most {limit.max_queued:,} waiting")
    return ", ".join(parts) + _of_whom(limit)


def _of_whom(limit: Limit) -> str:
    if limit.kind == "workflow_key" or (limit.kind == "key" and limit.name.endswith(":*")):
        return " (each key by itself)"
    if limit.name == EVERY:
        return f" (each {limit.kind} by itself)"
    return " (all tenants together)" if limit.tenant == EVERY else ""


def _period(seconds: float) -> str:
    units = {1.0: "second", 60.0: "minute", 3600.0: "hour", 86400.0: "day"}
    return units.get(seconds) or output.duration(seconds)


def limits_text(limits: Iterable[Limit]) -> str | None:
    return "; ".join(limit_text(x) for x in limits) or None

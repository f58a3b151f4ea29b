"""Pauses and limits as every noun of the command line spells them: options, verbs and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import options, output, parser
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import InvalidInput, quoted, told
from unstuck.model.spelling import about, given
from unstuck.operations.names import unheard_of
from unstuck.operations.table import Caller
from unstuck.records import dataclass
from unstuck.store.port import BY_CODE, EVERY
from unstuck.views.gates import LimitChange, LimitView, PauseView, UnpauseView

AllTenants = Annotated[bool, option("--all-tenants", help="for every tenant, not only this one")]
Together = Annotated[bool, option("--all-tenants", help="counts all tenants together, not only this one")]


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

    def known(self) -> str:
        return "--concurrency or --rate"

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

    def known(self) -> str:
        return "--concurrency, --rate or --max-queued"

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

    def caller(self, session: Session, by: str | None = None) -> Caller:
        return session.caller.about(EVERY if self.all_tenants else None, by)

    def flags(self, session: Session) -> str:
        """What a command about the same place must say besides."""
        if self.all_tenants:
            return "--all-tenants"
        return given("--tenant", session.tenant) if self.common.flags.get("tenant") else ""


# --- verbs --------------------------------------------------------------------------------------------------------

AskPause = Callable[..., PauseView]
AskUnpause = Callable[[Caller, str], UnpauseView]
AskLimit = Callable[..., LimitChange]
AskUnlimit = Callable[[Caller, str], LimitChange]


def pause(ask: AskPause, name: str, flags: PauseFlags, where: Where, by: str | None) -> None:
    if flags.for_ is not None and flags.until is not None:
        raise InvalidInput("--for and --until exclude each other")
    lasting, instant = (flags.for_, None) if flags.until is None else end_of(flags.until)
    with opened(where.common) as session:
        set_ = ask(where.caller(session, by), name, seconds=lasting, until=instant, reason=flags.reason)
        warn_if_unheard_of(session, set_.kind, name)
        if where.common.json:
            output.emit_view(set_)
            return
        output.say(f"{set_.kind} {name} is {output.styled('paused', 'yellow')} {_end(set_, session.now())}")
        output.note(
            "nothing new starts there, what runs goes on; "
            f"lift it: {about(f'unstuck {set_.kind}s unpause', name, _flags(set_.kind, where, session))}"
        )


def unpause(ask: AskUnpause, name: str, where: Where, by: str | None) -> None:
    with opened(where.common) as session:
        view = ask(where.caller(session, by), name)
    if where.common.json:
        output.emit_view(view)
        return
    if view.lifted and not view.left:
        output.say(f"{view.kind} {name} goes on")
    elif view.lifted:
        output.say(f"{view.kind} {name}: the pause is lifted")
    else:
        output.note(f"{view.kind} {name} was not paused{'' if not view.left else ' there'}")
    for other in view.left:
        whose = "for every tenant: add --all-tenants" if other.tenant == EVERY else f"for tenant {other.tenant}"
        output.note(f"it is still paused {whose}")


def limit(ask: AskLimit, lift: AskUnlimit, name: str, flags: LimitFlags, where: Where, by: str | None) -> None:
    changes = flags.changes()
    if flags.none == bool(changes):
        raise InvalidInput(f"say {flags.known()}, or --none to lift the limit")
    with opened(where.common) as session:
        caller = where.caller(session, by)
        view = lift(caller, name) if flags.none else ask(caller, name, **changes)
        warn_if_unheard_of(session, "workflow" if view.kind == "workflow_key" else view.kind, name)
    if where.common.json:
        output.emit_view(view)
    else:
        _print_limit(view)


def _print_limit(view: LimitChange) -> None:
    limited = f"{'each key of workflow' if view.kind == 'workflow_key' else view.kind} {view.name}"
    if view.limit is not None:
        output.say(f"{limited}: {limit_text(view.limit)}")
        if view.limit.set_by == BY_CODE:
            output.note("so says its code: that cannot be lifted here, but another limit can be set in its place")
    elif view.before is None:
        output.note(f"{limited} had no limit")
    else:
        output.say(f"{limited}: no limit any more")


def _flags(kind: str, where: Where, session: Session) -> str:
    return "" if kind == "tenant" else where.flags(session)


# --- what words mean ----------------------------------------------------------------------------------------------


def end_of(text: str) -> tuple[float | None, datetime | None]:
    """ "in 2h" is a time from now by the database's clock, anything else an instant with its zone."""
    words = text.strip()
    if words.lower().startswith("in "):
        return options.seconds(words[3:]), None
    try:
        return None, options.instant(text)
    except InvalidInput as error:
        raise InvalidInput(f'--until {error}; or a duration like "in 2h"') from None


def _number(word: str, name: str) -> int | None:
    return None if word == "none" else whole_number(word, name)


def whole_number(word: str, name: str) -> int:
    try:
        return parser.whole_number(word)
    except ValueError:
        raise InvalidInput(f"{name} {quoted(word)} is not a whole number") from None


def warn_if_unheard_of(session: Session, kind: str, name: str) -> None:
    """Allowed, since it may be set before the first job comes; but most often it is a typing error."""
    meant = unheard_of(session.caller, kind, name)
    if meant is not None:
        hint = f"; known: {', '.join(meant)}" if meant else ""
        output.note(f"nobody has used {kind} {told(name)} so far{hint}")


# --- words for people ---------------------------------------------------------------------------------------------


def pause_text(pauses: Iterable[PauseView], now: datetime) -> str | None:
    """Short, for a column: who, and until when."""
    return "; ".join(f"by {output.visible(p.by)}, {_end(p, now)}" for p in pauses) or None


def _end(pause: PauseView, now: datetime) -> str:
    everywhere = "for every tenant " if pause.tenant == EVERY else ""
    if pause.until_at is None:
        return f"{everywhere}until somebody lifts it"
    return f"{everywhere}until {output.rfc3339(pause.until_at)} ({output.age(pause.until_at, now)})"


def limit_text(limit: LimitView) -> str:
    """5 at once, 100 starts per 1m, at most 1,000 waiting."""
    parts = []
    if limit.concurrency is not None:
        parts.append(f"{limit.concurrency:,} at once")
    if limit.rate is not None:
        parts.append(f"{output.count(limit.rate, 'start')} per {_period(limit.per or 1.0)}")
    if limit.max_queued is not None:
        parts.append(f"at most {limit.max_queued:,} waiting")
    return ", ".join(parts) + _of_whom(limit)


def _of_whom(limit: LimitView) -> str:
    if limit.kind == "workflow_key" or (limit.kind == "key" and limit.name.endswith(":*")):
        return " (each key by itself)"
    if limit.name == EVERY:
        return f" (each {limit.kind} by itself)"
    return " (all tenants together)" if limit.tenant == EVERY else ""


def _period(seconds: float) -> str:
    units = {1.0: "second", 60.0: "minute", 3600.0: "hour", 86400.0: "day"}
    return units.get(seconds) or output.duration(seconds)


def limits_text(limits: Iterable[LimitView]) -> str | None:
    return "; ".join(limit_text(x) for x in limits) or None

"""Keys that end soon: those by which HTTP is asked, and those that sign jobs. Secrets that anybody who reads the
database can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from unstuck.intake.hooks import opened_secrets
from unstuck.intake.secrets import all_secrets
from unstuck.model.errors import InvalidSettings, SecretNotOpened
from unstuck.model.wording import age, count
from unstuck.operations.examinations.exam import DoctorCheck, Exam, finding
from unstuck.sealing import key_of
from unstuck.signing import SigningKey
from unstuck.views.doctor import FindingView, Severity

#: Seconds before its end in which a key is told of, and in which it is urgent.
SOON, URGENT = 14 * 86400.0, 3 * 86400.0
MOST_KEYS = 1000


def api_keys(exam: Exam) -> Iterator[FindingView]:
    """One whose place another has taken is meant to end."""
    now = exam.now
    for key in exam.caller.store.keys(None, limit=MOST_KEYS):
        if key.rotated_to is None and (severity := _severity(key.expires_at, now)) is not None:
            yield finding(
                "api_keys",
                severity,
                f"API key {key.id} ({key.name})",
                f"it ends {age(key.expires_at, now)}{_last_use(key.last_used_at, now)}",
                "who asks with it is refused from then on",
                f"unstuck keys rotate {key.id}",
            )


def _last_use(at: datetime | None, now: datetime) -> str:
    return ", and was never used" if at is None else f"; last used {age(at, now)}"


def signing_keys(exam: Exam) -> Iterator[FindingView]:
    """Of the process that is asked."""
    now = exam.now
    try:
        keys = [key for key in exam.caller.signing() if key.can_sign]
    except InvalidSettings as error:
        yield finding(
            "signing_keys",
            "error",
            "signing keys",
            str(error),
            "jobs are neither signed nor verified by what this process has",
            "unstuck signing keys",
        )
        return
    for key in keys:
        severity = _severity(key.end, now)
        if severity is None or _has_heir(key, keys):
            continue
        ended = key.end is not None and key.end <= now
        yield finding(
            "signing_keys",
            "error" if ended else severity,
            f"signing key {key.id}",
            f"it {'ended' if ended else 'ends'} {age(key.end, now)}, and no other key signs for {_whose(key)} then",
            "jobs are refused at the door, or come unsigned, from then on",
            "unstuck signing new-key",
        )


def hook_secrets(exam: Exam) -> Iterator[FindingView]:
    """In clear text, or sealed by a key that the process that is asked does not have."""
    store = exam.caller.store
    number, first = store.clear_hooks(None)
    if number:
        yield finding(
            "hook_secrets",
            "warning",
            f"hook {first}",
            f"{count(number, 'hook')} with secrets in clear text",
            "whoever reads the database, or a backup of it, can sign deliveries",
            "set sealing_keys (docs/hooks.md), then: unstuck hooks rotate NAME",
        )
    try:
        sealer = exam.caller.sealer()
    except InvalidSettings as error:
        yield finding("hook_secrets", "error", "sealing keys", str(error), "no delivery can be verified here", None)
        return
    for hook in store.hooks(None, limit=MOST_KEYS):
        try:
            opened_secrets(hook, sealer)
        except SecretNotOpened as error:
            yield finding(
                "hook_secrets",
                "error",
                f"hook {hook.name}",
                str(error),
                "a server without this key answers its deliveries with 503",
                "give every server the same sealing_keys, or: unstuck hooks rotate NAME",
            )


def sealed_secrets(exam: Exam) -> Iterator[FindingView]:
    """Of hooks and webhooks, that need another key than the one that seals; of webhooks, also what is not sealed at
    all, or cannot be opened here."""
    try:
        sealer = exam.caller.sealer()
    except InvalidSettings:
        return  # told about the hooks'
    older: dict[str | None, list[str]] = {}
    for kept in islice(all_secrets(exam.caller.store), MOST_KEYS):
        whose = f"{kept.owner} {kept.name}"
        try:
            sealer.open(kept.stored, kept.place)
        except SecretNotOpened as error:
            if kept.owner == "webhook":
                harm = "nothing is sent to it by a process without this key"
                remedy = "give every worker and server the same sealing_keys, or: unstuck webhooks rotate NAME"
                yield finding("sealed_secrets", "error", whose, str(error), harm, remedy)
            continue
        if not sealer.is_newest(kept.stored) or (not sealer and kept.owner == "webhook"):
            older.setdefault(key_of(kept.stored), []).append(whose)
    for key, those in older.items():
        yield _older(key, those, has_key=bool(sealer))


def _older(key: str | None, those: Sequence[str], *, has_key: bool) -> FindingView:
    some, first = count(len(those), "secret"), those[0]
    if key is not None:
        what, harm = f"{some} sealed by key {key}, not by the first", "that key cannot be taken away"
        return finding("sealed_secrets", "note", first, what, harm, "unstuck db reseal")
    what, harm = f"{some} in clear text", "whoever reads the database, or a backup of it, can sign deliveries"
    remedy = "unstuck db reseal" if has_key else "set sealing_keys (docs/hooks.md), then: unstuck db reseal"
    return finding("sealed_secrets", "warning", first, what, harm, remedy)


def _has_heir(key: SigningKey, keys: Sequence[SigningKey]) -> bool:
    """Another that signs for the same, beyond its end."""
    assert key.end is not None
    return any(
        other.id != key.id
        and other.tenant in (key.tenant, "*")
        and set(key.purposes) <= set(other.purposes)
        and (other.begin is None or other.begin <= key.end)
        and (other.end is None or other.end > key.end)
        for other in keys
    )


def _whose(key: SigningKey) -> str:
    return "every tenant" if key.tenant == "*" else f"tenant {key.tenant}"


def _severity(end: datetime | None, now: datetime) -> Severity | None:
    """None: it ends later, or never."""
    if end is None:
        return None
    left = (end - now).total_seconds()
    return None if left > SOON else "note" if left > URGENT else "warning"


CHECKS = (
    DoctorCheck("api_keys", "API keys that end soon", api_keys),
    DoctorCheck("signing_keys", "signing keys of this process that end soon", signing_keys, needs_schema=False),
    DoctorCheck("hook_secrets", "secrets of hooks that are not sealed, or cannot be opened here", hook_secrets),
    DoctorCheck("sealed_secrets", "secrets that need an older sealing key, and those of webhooks", sealed_secrets),
)

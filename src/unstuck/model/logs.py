"""What a job says as data: log records, and how they stand inside the text of an attempt's output.

A record is a line of its own: RS, JSON, newline (the framing of RFC 7464). What a handler prints can hold no RS
(`printed`), so nothing but a record looks like one; one that was cut or broken on its way is shown as text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from unstuck.records import dataclass

RS = "\x1e"
#: Characters of JSON: the most that one record may take of an attempt's output.
MAX_RECORD = 16 << 10
#: A message gets at least what the fields leave; the last one fits even if JSON writes six characters for each.
_MESSAGE_CUTS = (12_000, 6000, 1000)
_MAX_FIELDS = MAX_RECORD // 2
_MAX_VALUE = 1 << 10
#: Characters that are kept of a longer text, from both of its ends.
_KEPT = 900
_MAX_NAME = 200
_MAX_DEPTH = 10
_MAX_ITEMS = 2000
_LONGEST_INT = 1 << 1000

#: What records of the standard library say of the attempt that made them, inside executors; None elsewhere. By names
#: of our own: what a program says by `extra=` must not be there already.
RECORD_FIELDS = (
    "unstuck_job",
    "unstuck_workflow",
    "unstuck_tenant",
    "unstuck_attempt",
    "unstuck_trace",
    "unstuck_span",
)

SEVERITIES = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_OTHER_NAMES = {"warn": "warning", "fatal": "critical"} | {str(n): name for name, n in SEVERITIES.items()}

#: What ends a line, moves a cursor or turns the writing around.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_NEEDS_QUOTES = re.compile(r'[\s"]|' + _UNSAFE.pattern)
#: Whose str() says more to people than their repr().
_SPOKEN = {"datetime", "decimal", "uuid", "pathlib", "ipaddress", "fractions"}


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One thing that a handler said: by `ctx.log`, or through a logger of the standard library, which is named."""

    at: datetime
    level: str
    message: str
    fields: dict[str, Any] = field(default_factory=dict)
    logger: str | None = None

    @property
    def severity(self) -> int:
        return severity(self.level)

    @property
    def text(self) -> str:
        """As a person reads it: one line, except that a logger's message may go on below, indented."""
        said = "".join(f" {_quoted(name)}={_quoted(value)}" for name, value in self.fields.items())
        if self.logger is None:
            level = "" if self.level == "info" else f"{_spelt(self.level, _UNSAFE).upper()} "
            return f"{level}{_spelt(self.message, _UNSAFE)}{said}\n"
        first, *more = _spelt(self.message, _UNSAFE_IN_LINES).split("\n")
        below = "".join(f"\n  {line}" for line in more)
        return f"{_spelt(self.level, _UNSAFE).upper()} {_spelt(self.logger, _UNSAFE)}: {first}{said}{below}\n"


def severity(level: str) -> int:
    """As the standard library counts; a level that nobody knows is as important as info."""
    if (known := SEVERITIES.get(level)) is not None:
        return known
    number = level.rpartition(" ")[2]
    return int(number) if number.isdecimal() and number.isascii() and len(number) < 10 else SEVERITIES["info"]


def level_named(level: object) -> str:
    """As records name it: lower case, one spelling each, also of numbers. Never refused."""
    if type(level) is str and level in SEVERITIES:
        return level
    name = _text_of(level, 40).strip().lower()
    name = _OTHER_NAMES.get(name, name)
    return f"level {name}" if name.isdecimal() else name or "info"


# --- reading ----------------------------------------------------------------------------------------------------


def split(text: str) -> list[str | LogRecord]:
    """Printed text and records, in the order they came; texts that touch are one."""
    plain, *framed = text.split(RS)
    found: list[str | LogRecord] = []
    for part in framed:
        line, newline, rest = part.partition("\n")
        record = _read(line) if newline else None
        if record is None:
            plain += part
            continue
        if plain:
            found.append(plain)
        found.append(record)
        plain = rest
    return [*found, plain] if plain else found


def as_text(text: str) -> str:
    """The output for people."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in split(text)) if RS in text else text


def complete(text: str) -> str:
    """Without a record at the end whose own end has not come yet."""
    begun = text.rfind(RS)
    return text if begun < 0 or "\n" in text[begun:] else text[:begun]


def _read(line: str) -> LogRecord | None:
    try:
        match _DECODER.decode(line):
            case {"at": str(at), "level": str(level), "message": str(message), **more}:
                fields, logger = more.get("fields", {}), more.get("logger")
                if isinstance(fields, dict) and (logger is None or isinstance(logger, str)):
                    return LogRecord(_instant(at), level, message, fields, logger)
    except (ValueError, OverflowError, RecursionError):
        pass
    return None


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


# --- writing ----------------------------------------------------------------------------------------------------


def printed(text: str) -> str:
    """Text that a handler prints, so that it cannot pass for a record."""
    return text.replace(RS, "\u241e") if RS in text else text


def frame(record: LogRecord) -> str:
    """The record as a line of output. Whatever a handler put into it: never refused, always bounded."""
    message = record.message if type(record.message) is str else _text_of(record.message, 2 * MAX_RECORD)
    fields = {_text_of(name, _MAX_NAME): _plain(value) for name, value in record.fields.items()}
    # What is too long by far is not written out only to be measured.
    text = _written(record, message, fields) if len(message) <= MAX_RECORD else ""
    return f"{RS}{text if 0 < len(text) <= MAX_RECORD else _shortened(record, message, fields)}\n"


def _written(record: LogRecord, message: str, fields: dict[str, Any]) -> str:
    """Put together by hand, since an encoder takes longer to begin than to write three texts."""
    more = f',"fields":{_encode(fields)}' if fields else ""
    if record.logger is not None:
        more += f',"logger":{_string(_text_of(record.logger, _MAX_NAME))}'
    level = _string(level_named(record.level))
    return f'{{"at":"{record.at.isoformat()}","level":{level},"message":{_string(message)}{more}}}'


def _shortened(record: LogRecord, message: str, fields: dict[str, Any]) -> str:
    fields = _fewer(fields)
    for limit in _MESSAGE_CUTS:
        text = _written(record, _cut(message, limit), fields)
        if len(text) <= MAX_RECORD:
            break
    return text


def _fewer(fields: dict[str, Any]) -> dict[str, Any]:
    """Of large texts the ends stay, other large values become a note of their size; if that is not enough, everything
    does."""
    size = len(_encode(fields))
    if size <= _MAX_FIELDS:
        return fields
    kept = {name: _less(value) for name, value in fields.items()}
    if len(_encode(kept)) <= _MAX_FIELDS:
        return kept
    return {"…": f"{len(fields):,} fields of {size:,} characters cut"}


def _less(value: Any) -> Any:
    if (size := len(_encode(value))) <= _MAX_VALUE:
        return value
    return _cut(value, _KEPT) if isinstance(value, str) else f"… {size:,} characters cut …"


def _cut(text: str, limit: int) -> str:
    """The end of a message is worth as much as its beginning: tracebacks say there what happened."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters cut … {text[-half:]}"


class _TooMany(Exception):
    """A value that is too large to be read in a log."""


def _plain(value: object) -> Any:
    """As JSON can hold it, without calling more of the value's own code than it must."""
    kind = type(value)
    if kind is str or kind is int or kind is float or kind is bool or value is None:
        return _scalar(value)
    try:
        return _copied(value, iter(range(_MAX_ITEMS)), 0)
    except _TooMany:
        return f"<{_name_of(value)} with more than {_MAX_ITEMS:,} values in it>"
    except Exception:  # changed by another thread meanwhile, for one
        return _spoken(value)


def _copied(value: Any, left: Iterator[int], depth: int) -> Any:
    if next(left, None) is None:
        raise _TooMany
    kind = type(value)
    if depth < _MAX_DEPTH and issubclass(kind, dict):
        return {_text_of(n, _MAX_NAME): _copied(v, left, depth + 1) for n, v in dict.items(value)}
    if depth < _MAX_DEPTH and issubclass(kind, list | tuple):
        elements = list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)
        return [_copied(element, left, depth + 1) for element in elements]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    kind = type(value)
    if kind is bool or value is None:
        return value
    if issubclass(kind, str):
        text = str.__str__(value)
        return text if len(text) <= MAX_RECORD else _cut(text, _KEPT)  # once, so that the count is of what is missing
    if issubclass(kind, int) and -_LONGEST_INT < (number := int.__index__(value)) < _LONGEST_INT:
        return number
    if issubclass(kind, float) and math.isfinite(real := float.__float__(value)):
        return real
    return _spoken(value)


def _text_of(value: object, limit: int) -> str:
    if issubclass(type(value), str):
        return _cut(str.__str__(value), limit)
    try:
        return _cut(str.__str__(str(value)), limit)
    except BaseException:
        return _unspeakable(value)


def _spoken(value: object) -> str:
    try:
        is_spoken = type(value).__module__.partition(".")[0] in _SPOKEN
        return _cut(str.__str__(str(value) if is_spoken else repr(value)), MAX_RECORD)
    except BaseException:
        return _unspeakable(value)


def _unspeakable(value: object) -> str:
    return f"<{_name_of(value)}: it cannot be shown>"


def _name_of(value: object) -> str:
    """As the interpreter keeps it, whatever its metaclass would say."""
    return _cut(str(type.__dict__["__name__"].__get__(type(value))), _MAX_NAME)


_string = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


# --- for people -------------------------------------------------------------------------------------------------


def _quoted(value: Any) -> str:
    """Text as it is if it is one word, everything else as JSON: one record stays one line."""
    if isinstance(value, str) and value and not _NEEDS_QUOTES.search(value):
        return value
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", _encode(value))


def _spelt(text: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(_spell, text)


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _SHORT.get(code) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


_SHORT: Mapping[int, str] = {10: "\\n", 13: "\\r", 9: "\\t"}

"""What executors say, held to be hostile: bounded, storable and plausible, or BadFrame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import msgspec

from unstuck.executor.messages import (
    BadFrame,
    GatherMessage,
    KeepPart,
    LoadJournal,
    Park,
    Publish,
    Question,
    Raise,
    RecordStep,
    Return,
    Say,
    SpawnMessage,
    Spend,
    Stop,
)
from unstuck.executor.messages import LeftBehindMessage as Leaves
from unstuck.model.errors import InvalidInput, NotStorable
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.lifecycle import RequestKind
from unstuck.model.limits import parse_rate
from unstuck.model.news import MAX_DATA, check_place, check_publication
from unstuck.model.parts import MAX_PART
from unstuck.model.payload import MAX_DEPTH, MAX_PAYLOAD, check_name, check_text, clean_text, decode, encode
from unstuck.model.policy import LONGEST, MOST_SPENT, Policy, filled
from unstuck.model.settlement import ErrorInfo, Lost, Outcome, Parked, Raised, Refused, Returned, Stopped
from unstuck.model.trace import checked
from unstuck.model.waits import Wait, WaitKind
from unstuck.worker.processes import LeftBehind

MAX_TEXT = 64 << 10
MAX_NAME = 200
MAX_THREADS = 50
#: A key is a name, or made of the kind of a wait, an event's name and a number.
MAX_KEY = 2 * MAX_NAME
MAX_SAID = 16 << 10
MAX_QUESTION = 8 << 10
MAX_WHO = 100
MAX_CHILDREN = 1000
MAX_UNITS = 100
MOST_SERIAL = (1 << 31) - 1
MOST_MICROS = 1 << 58
#: The end of the year 9999 in microseconds since 1970: beyond it nobody can read an instant.
LAST_INSTANT = 253_402_300_799_999_999
#: What a handler without a result returns, as JSON.
NOTHING = "null"
_json_syntax = msgspec.json.Decoder(msgspec.Raw)
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
#: As signed bytes: one level up, one down.
_UP_AND_DOWN = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")


def outcome_of(message: Return | Raise | Stop | Park, max_result: int, *, is_alone: bool = False) -> Outcome:
    match message:
        case Return():
            if message.result != NOTHING:
                _check_result(message.result, max_result)
            return Returned(message.result)
        case Stop():
            return Stopped(_kind(message.asked), _bounded(message.message))
        case Park():
            _check_wait(message.wait)
            return Parked(message.wait)
        case Raise():
            error = ErrorInfo(
                clean_text(message.type, 200), clean_text(message.message, MAX_TEXT), _bounded(message.stack)
            )
            if message.is_starved and not is_alone:
                # Any job of its process may have used them up, also one that has ended. Only a lone job is charged.
                why = "a job of its process has used them up, which one cannot be told: it runs again alone"
                return Lost(replace(error, message=f"{error.message}; {why}"), "bystander")
            return Raised(error, message.retry, _delay(message.after))


def check_outcome(outcome: Outcome, max_result: int) -> None:
    """How an attempt ended, as a worker at a distance says: what `outcome_of` makes of an executor's word passes."""
    match outcome:
        case Returned(result):
            if result is not None and result != NOTHING:
                _check_result(result, max_result)
        case Raised():
            _delay(outcome.after)
        case Parked(wait):
            _check_wait(wait)
        case Refused():
            raise BadFrame("signatures are verified by the server")
        case _:
            pass  # texts, which the store makes storable


def check_progress(text: str) -> None:
    _check_json(text, MAX_TEXT, "progress")


def check_workflow(workflow: WorkflowRecord) -> None:
    """What a worker at a distance registers."""
    for text, limit in (
        (workflow.code_version, MAX_NAME),
        (workflow.target or "", MAX_SAID),
        (workflow.limit_key or "", MAX_SAID),
    ):
        _check_length(text, limit)
    if problems := workflow.policy.problems():
        raise BadFrame("; ".join(problems))
    for most in (workflow.concurrency, workflow.key_concurrency):
        _within(1 if most is None else most, 1, MOST_SERIAL, "a limit")
    for rate in (workflow.rate, workflow.key_rate):
        if rate is not None:
            try:
                parse_rate(rate)
            except InvalidInput as error:
                raise BadFrame(str(error)) from None
    _within(1.0 if workflow.max_timeout is None else workflow.max_timeout, 0.001, LONGEST, "a longest timeout")
    try:
        _check_json(encode(workflow.schema, "the schema"), MAX_PAYLOAD, "a schema")
    except NotStorable as error:
        raise BadFrame(str(error)) from None
    for name in workflow.redact:
        _check_length(name, MAX_SAID)


def output_of(message: Return | Raise | Stop | Park) -> str | None:
    return None if message.output is None else clean_text(message.output, 2 * MAX_TEXT)


def said(message: Say) -> str:
    if message.kind == "progress":
        try:
            decode(message.text, "progress")
        except NotStorable as error:
            raise BadFrame(str(error)) from None
    elif message.kind == "span":
        if (known := checked(message.text)) is None:
            raise BadFrame("a span that is none")
        return known
    return clean_text(message.text, MAX_TEXT)


def left_behind(executor: int, message: Leaves) -> LeftBehind:
    names = tuple(clean_text(name, MAX_NAME) for name in message.threads[:MAX_THREADS])
    broken = clean_text(message.broken_import, MAX_NAME)
    processes = tuple(clean_text(name, MAX_NAME) for name in message.processes[:MAX_THREADS])
    poison = clean_text(message.poison, MAX_NAME)
    workflow = clean_text(message.workflow, MAX_NAME)
    return LeftBehind(executor, workflow, names, broken, processes, message.is_killed, poison)


def check_question(question: Question, max_result: int) -> None:
    """What a handler asks for, as an executor of ours would have sent it. Whether it may, the database decides."""
    try:
        match question:
            case LoadJournal():
                _within(question.after, 0, MOST_MICROS, "a page")
            case RecordStep():
                check_name(question.name, "step")
                _within(question.ordinal, 1, MOST_SERIAL, "an ordinal")
                _within(question.ms, 0, LONGEST * 1000, "a duration")
                _check_result(question.result, max_result)
            case Spend():
                _within(len(question.amounts), 1, MAX_UNITS, "a number of units")
                for unit, amount in question.amounts.items():
                    check_name(unit, "unit")
                    _within(amount, 0, MOST_SPENT, "an amount")
            case SpawnMessage():
                check_name(question.name, "child")
                _within(question.ordinal, 1, MOST_SERIAL, "an ordinal")
                _check_job(question.job)
            case GatherMessage():
                _check_children(question.children)
            case KeepPart():
                check_name(question.name, "partial result")
                _check_json(question.value, MAX_PART, "a partial result")
            case Publish(place=place, publication=given):
                check_place(place)
                check_publication(given)
                _check_json(given.data, MAX_DATA, "what is published")
    except InvalidInput as error:
        raise BadFrame(str(error)) from None


def _check_job(job: NewJob) -> None:
    """It was checked where it was made; here only what would break a rule of the tables."""
    names = [(job.id, "id"), (job.tenant, "tenant"), (job.queue, "queue"), (job.workflow, "workflow")]
    names += [(tag, "tag") for tag in job.tags] + [(other, "after") for other in job.after]
    for name, kind in names:
        check_name(name, kind)
    for text in (job.key, job.fingerprint, job.target, job.limit_key):
        _check_length(text or "", MAX_KEY)
    _within(job.priority, -MOST_SERIAL, MOST_SERIAL, "a priority")
    _within(job.delay, 0, LONGEST, "a delay")
    if job.start_at is not None and job.start_at.tzinfo is None:
        raise BadFrame("a start without a time zone")
    if problems := job.policy.problems():
        raise BadFrame("; ".join(problems))
    job.trace = checked(job.trace)
    _check_said(job.said)
    _check_json(job.payload, MAX_PAYLOAD, "a payload")


def _check_said(said: str | None) -> None:
    if said is None:
        return
    _check_length(said, MAX_SAID)
    try:
        filled("a child", Policy(), said)
    except (TypeError, ValueError, RecursionError):
        raise BadFrame("what it says of its policy cannot be read") from None


def _check_wait(wait: Wait) -> None:
    """Nothing that the settlement would refuse: it concerns other attempts as well."""
    longest = MAX_QUESTION if wait.kind is WaitKind.APPROVAL else MAX_NAME
    for text, limit in ((wait.key, MAX_KEY), (wait.name, longest), (wait.topic or "", MAX_NAME)):
        _check_length(text, limit)
    _within(len(wait.who), 0, MAX_WHO, "a number of people")
    for who in wait.who:
        _check_length(who, MAX_NAME)
    _check_children(wait.children)
    if wait.timeout is not None and not 0 < wait.timeout <= LONGEST:
        raise BadFrame(f"a wait of {wait.timeout} seconds")
    if wait.until is not None:
        _within(wait.until, 0, LAST_INSTANT, "an instant")
    if (wait.on_timeout == "default") is not (wait.default is not None):
        raise BadFrame("a default that is none")
    if wait.default is not None:
        _check_json(wait.default, MAX_PAYLOAD, "a default")


def _check_children(children: Sequence[str]) -> None:
    _within(len(children), 0, MAX_CHILDREN, "a number of children")
    for child in children:
        _check_length(child, MAX_NAME)


def _check_length(text: str, limit: int) -> None:
    if len(text) > limit:
        raise BadFrame(f"text of {len(text):,} characters; the limit is {limit:,}")
    try:
        check_text(text, "it")
    except NotStorable as error:
        raise BadFrame(str(error)) from None


def _within(value: float, low: float, high: float, what: str) -> None:
    if not low <= value <= high:
        raise BadFrame(f"{what} of {value}")


def _bounded(text: str | None) -> str | None:
    return None if text is None else clean_text(text, MAX_TEXT)


def _kind(asked: str | None) -> RequestKind | None:
    try:
        return None if asked is None else RequestKind(asked)
    except ValueError:
        raise BadFrame(f"it was asked {asked!r}") from None


def _delay(after: float | None) -> float | None:
    if after is not None and not 0.0 <= after < math.inf:
        raise BadFrame(f"a retry after {after} seconds")
    return after


def _check_result(text: str, limit: int) -> None:
    """Executors check results by the full rules; here only what a broken one could put into the database."""
    _check_json(text, limit, "a result")


def _check_json(text: str, limit: int, what: str) -> None:
    if len(text) > limit:
        raise BadFrame(f"{what} of {len(text):,} characters; the limit is {limit:,}")
    try:
        if "\\u" in text or "\x00" in text:
            decode(text, what)
        else:
            _json_syntax.decode(text)
    except (msgspec.DecodeError, NotStorable, RecursionError) as error:
        raise BadFrame(f"{what} that is not JSON: {error}") from None
    if _is_too_deep(text):
        raise BadFrame(f"{what} that is nested deeper than {MAX_DEPTH} levels")


def _is_too_deep(text: str) -> bool:
    """Of text that is JSON. A later reader may have less of a stack than we have here.

    Results are large and the supervisor is in a hurry: nothing here goes through them value by value.
    """
    most = MAX_DEPTH + 1  # an empty list on the deepest level
    if text.count("[") + text.count("{") <= most:
        return False
    # Brackets within texts do not count. Backslashes first: after that every quote begins or ends a text.
    marks = text.replace("\\\\", "").replace('\\"', "").encode().translate(None, _NO_MARKS)
    brackets = b"".join(marks.split(b'"')[::2]).translate(_UP_AND_DOWN)
    return max(accumulate(memoryview(brackets).cast("b")), default=0) > most

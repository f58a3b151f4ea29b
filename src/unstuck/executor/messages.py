"""What supervisor, zygote and executors say to each other.

A frame is a four-byte length and one MessagePack list of messages: one frame per wake-up, however much there is to
say. Everything is schema-checked on arrival. Attempts are named by a number that the fleet deals out, so that an
executor can speak only of what it was fed.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.news import Publication
from unstuck.model.schedules import DeclaredSchedule
from unstuck.model.waits import Child, Journal, Spent, Wait

#: A result may be 64 MiB (model.policy); a frame that claims to be larger is not ours.
MAX_FRAME = 80 << 20
#: Messages are gathered into frames of about this size, so that no side has to buffer a whole batch of big ones.
FULL_FRAME = 1 << 20
_LENGTH = struct.Struct("<I")
#: Signals say what no frame can to a process that does not read: real-time ones, which programs hardly ever use.
#: The first asks for the stacks of all threads, the second interrupts the attempt that the page's aim names.
STACK_SIGNAL = getattr(signal, "SIGRTMIN", 34) + 7
INTERRUPT_SIGNAL = STACK_SIGNAL + 1


class Message(msgspec.Struct, array_like=True, gc=False, tag_field="message_tag"):
    """Travels as an array that begins with its tag."""


# What a handler asks of the database, by way of its supervisor, and what it is told.


class LoadJournal(Message, tag=1):
    after: int


class RecordStep(Message, tag=2):
    name: str
    ordinal: int
    result: str
    ms: int


class Spend(Message, tag=3):
    amounts: dict[str, float]


class SpawnMessage(Message, tag=4):
    name: str
    ordinal: int
    job: NewJob
    on_end: Literal["cancel", "leave"]


class GatherMessage(Message, tag=5):
    children: list[str]
    release_target: bool


class KeepPart(Message, tag=6):
    name: str
    value: str


class Publish(Message, tag=7):
    """`place` counts what this attempt publishes."""

    place: int
    publication: Publication


class JournalPage(Message, tag=1):
    journal: Journal


class Done(Message, tag=2):
    pass


class SpentAnswer(Message, tag=3):
    spent: Spent


class ChildAnswer(Message, tag=4):
    child: Child


class GatherAnswer(Message, tag=5):
    """`ended`: how they ended, as JSON; None while one of them has not."""

    ended: str | None


class RefusedMessage(Message, tag=6):
    """By an error of ours, to be raised where the handler asked."""

    type: str
    message: str


class Fenced(Message, tag=7):
    """The attempt is not its worker's any more."""


Question = LoadJournal | RecordStep | Spend | SpawnMessage | GatherMessage | KeepPart | Publish
Reply = JournalPage | Done | SpentAnswer | ChildAnswer | GatherAnswer | RefusedMessage | Fenced
#: Of one attempt under way at a time; its executor keeps the others back.
MAX_FLOW_CALLS = 16


# supervisor → executor


class Run(Message, tag=1):
    """Run this attempt. `place` is its cell in the shared page."""

    number: int
    place: int
    job: str
    token: int
    claim: str
    run: int
    attempt: int
    tenant: str
    queue: str
    workflow: str
    payload: str
    timeout: float | None
    max_result: int
    grace: float = 10.0
    trace: str | None = None
    span: str | None = None


class Cancel(Message, tag=2):
    number: int
    kind: str | None
    reason: str


class RecallMessage(Message, tag=3):
    numbers: list[int]


class DrainMessage(Message, tag=4):
    pass


class Show(Message, tag=5):
    """Say where these attempts are (Shown): the supervisor sees threads by itself, but no suspended coroutine."""

    numbers: list[int]


class Answered(Message, tag=6):
    number: int
    serial: int
    answer: Reply


# executor → supervisor


class Ready(Message, tag=1):
    pass


class Begun(Message, tag=2):
    """Left out if its end is said as soon."""

    number: int
    at: float


class Return(Message, tag=3):
    number: int
    ms: int
    result: str
    output: str | None


class Raise(Message, tag=4):
    number: int
    ms: int
    type: str
    message: str
    stack: str | None
    retry: bool | None
    after: float | None
    output: str | None
    #: It had no descriptor left to open anything with; which job used them up is not known.
    is_starved: bool = False


class Stop(Message, tag=5):
    number: int
    ms: int
    asked: str | None
    message: str | None
    output: str | None


class GivenBack(Message, tag=6):
    numbers: list[int]


class Say(Message, tag=7):
    number: int
    kind: Literal["output", "progress", "span"]
    text: str


class Failed(Message, tag=8):
    """It could not begin: an on_start hook or its own import of the app raised."""

    error: str


class ShownMessage(Message, tag=9):
    """Where an attempt is, as its own process can tell: a coroutine's chain of awaits, a thread's frames."""

    number: int
    stack: str


class LeftBehindMessage(Message, tag=10):
    """An attempt of this workflow has ended, and what it had started has not; or it was interrupted within an import.

    `processes` were ended for it, by TERM or, `is_killed`, by KILL. `poison`: what is wrong with its process now."""

    workflow: str
    threads: list[str]
    broken_import: str = ""
    processes: list[str] = []
    is_killed: bool = False
    poison: str = ""


class FlowCallMessage(Message, tag=11):
    """Answered under the same serial."""

    number: int
    serial: int
    question: Question


class Park(Message, tag=12):
    """It has unwound to wait for this."""

    number: int
    ms: int
    wait: Wait
    output: str | None


# supervisor → zygote


class Fork(Message, tag=1):
    """Start an executor; its socket, page, stack and output descriptors come along, in this order."""

    executor: int
    alone: bool
    slots: int


# supervisor → zygote, once, when it is known how the worker is to run


class WorkerTerms(Message, tag=2):
    """How this worker runs what the zygote imports; the page with its lease comes along. A zygote may be started
    before anybody knows: its app's own code has a say in it."""

    pulse: float
    #: None: fork, if nothing speaks against it.
    fork: bool | None = None
    #: What this worker gives to jobs that say nothing of it, as JSON; None: as the app's own settings have it.
    policy: str | None = None
    max_timeout: float | None = None
    #: For handlers that enqueue: an App() without a database of its own means this one. None: the worker has none.
    database: str | None = None


# zygote → supervisor


class AppImported(Message, tag=1):
    workflows: list[WorkflowRecord]
    code_version: str
    mode: Literal["fork", "spawn"]
    reason: str
    #: Names of the workflows whose handlers are coroutines: they need a live event loop.
    coroutines: list[str] = []
    #: What it declares to run by the clock, the name by which that is its own, and where it was imported from.
    schedules: list[DeclaredSchedule] = []
    app: str = ""
    origin: str = ""


class AppFailed(Message, tag=2):
    error: str
    #: What was found there instead of an App: the name of its type.
    found: str = ""


class Forked(Message, tag=3):
    executor: int
    pid: int


class NotForked(Message, tag=4):
    executor: int
    error: str


class ExitedMessage(Message, tag=5):
    """Reaped, and its descendants are gone. `status` as waitpid gave it; `why` if the zygote ended it itself."""

    executor: int
    pid: int
    status: int
    why: str


class AppFound(Message, tag=6):
    """The app is imported, and terms are waited for. `settings`: those that its own code names."""

    settings: dict[str, Any]


ToExecutor = Run | Cancel | RecallMessage | DrainMessage | Show | Answered
FromExecutor = (
    Ready
    | Begun
    | Return
    | Raise
    | Stop
    | Park
    | GivenBack
    | Say
    | Failed
    | ShownMessage
    | LeftBehindMessage
    | FlowCallMessage
)
FromZygote = AppFound | AppImported | AppFailed | Forked | NotForked | ExitedMessage

to_executor = msgspec.msgpack.Decoder(list[ToExecutor])
from_executor = msgspec.msgpack.Decoder(list[FromExecutor])
to_zygote = msgspec.msgpack.Decoder(list[Fork | WorkerTerms])
from_zygote = msgspec.msgpack.Decoder(list[FromZygote])
_encoder = msgspec.msgpack.Encoder()


class BadFrame(Exception):
    """Bytes that are not ours; their sender has lost our trust."""


def pack(messages: list[Any]) -> bytes:
    body = _encoder.encode(messages)
    return _LENGTH.pack(len(body)) + body


def pack_all(messages: Iterable[Any], weight: Any) -> Iterator[bytes]:
    """Frames of about FULL_FRAME each; `weight` estimates a message's size."""
    batch: list[Any] = []
    size = 0
    for message in messages:
        batch.append(message)
        size += weight(message)
        if size > FULL_FRAME:
            yield pack(batch)
            batch, size = [], 0
    if batch:
        yield pack(batch)


class FrameReader:
    """Bytes in, messages out; keeps what is not a whole frame yet."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[list[Any]]) -> None:
        self._decoder = decoder
        self._bytes = bytearray()

    def take(self, data: bytes) -> list[Any]:
        """The messages that these bytes complete, or BadFrame."""
        held = self._bytes
        held += data
        found: list[Any] = []
        begin = 0
        while len(held) - begin >= 4:
            (length,) = _LENGTH.unpack_from(held, begin)
            if length > MAX_FRAME:
                raise BadFrame(f"a frame of {length:,} bytes; the limit is {MAX_FRAME:,}")
            end = begin + 4 + length
            if len(held) < end:
                break
            try:
                found += self._decoder.decode(bytes(memoryview(held)[begin + 4 : end]))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise BadFrame(str(error)) from None
            begin = end
        if begin:
            del held[:begin]
        return found

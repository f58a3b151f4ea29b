"""What is sent to a server and what is heard from it, whoever carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Sending(NamedTuple):
    """One request. `path` is quoted and stands behind the server's address; `patience`: for so many seconds the
    server may say nothing."""

    method: str
    path: str
    body: bytes | None
    patience: float


class ServerAnswer(NamedTuple):
    """What a server answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswerHeard(NamedTuple):
    """Nothing came that could be read. `was_sent`: the request may have reached the server; `is_final`: a repeat
    would end the same way."""

    reason: str
    was_sent: bool
    is_final: bool = False


Heard = ServerAnswer | NoAnswerHeard

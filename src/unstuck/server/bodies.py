"""Bodies: read with a limit on size and time, then taken as JSON only if every database could give it back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from unstuck.model.errors import NotStorable
from unstuck.model.payload import decode
from unstuck.server.problems import HttpProblem

#: Bytes of a body: the largest payload, and room for what is said about it.
MOST_BYTES = 2 << 20
#: Seconds until a body is there; and how slowly one may come that is larger, of those who may send it.
LONGEST = 20.0
SLOWEST = 64 << 10
#: Larger ones on one server at once, and of one key: each may take megabytes of its memory, for minutes.
MOST_LARGE = 4
MOST_LARGE_OF_KEY = 2
MOST_KEYS = 50_000


async def read(chunks: AsyncIterator[bytes], declared: str | None, most: int = MOST_BYTES) -> bytes:
    """The whole body. What is too much is not read to its end, whatever its sender declared."""
    if declared is not None and (not declared.isascii() or not declared.isdigit() or len(declared) > 18):
        raise HttpProblem("BadRequest", "Content-Length is not a number", Connection="close")
    if declared is not None and int(declared) > most:
        raise _too_large(most)
    longest = LONGEST + max(0, (most if declared is None else int(declared)) - MOST_BYTES) / SLOWEST
    found = bytearray()
    try:
        async with asyncio.timeout(longest):
            async for chunk in chunks:
                found += chunk
                if len(found) > most:
                    raise _too_large(most)
    except TimeoutError:
        raise HttpProblem("TooSlow", f"the body was not there after {longest:g} s", Connection="close") from None
    return bytes(found)


def may_be_large(declared: str | None) -> bool:
    """Whether more may come than everybody may send."""
    is_number = declared is not None and declared.isascii() and declared.isdigit() and len(declared) <= 18
    return not is_number or int(declared or 0) > MOST_BYTES


class LargeBodies:
    """Whoever may send one has a place until the answer is there. Of one event loop."""

    def __init__(self) -> None:
        self._key_of: dict[object, str | None] = {}

    def enter(self, exchange: object, key: str | None) -> None:
        of_key = sum(other == key for other in self._key_of.values())
        if len(self._key_of) >= MOST_LARGE or of_key >= MOST_LARGE_OF_KEY:
            raise HttpProblem("Overloaded", "as many large bodies come as may at once", Connection="close")
        self._key_of[exchange] = key

    def leave(self, exchange: object) -> None:
        self._key_of.pop(exchange, None)


def parse(body: bytes) -> Any:
    """Its JSON: in UTF-8, not too deep, no key twice, no NaN, no NUL, no half of a character, no endless number."""
    try:
        text = body.decode()
        value = decode(text, "the body")
    except UnicodeDecodeError:
        raise HttpProblem("NotJson", "the body is not text in UTF-8") from None
    except NotStorable as error:
        raise HttpProblem("NotJson", str(error)) from None
    if text.count(":") > MOST_KEYS and (keys := _keys(value)) > MOST_KEYS:
        raise HttpProblem("NotJson", f"the body has {keys:,} keys; the limit is {MOST_KEYS:,}")
    return value


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0


def _too_large(most: int) -> HttpProblem:
    return HttpProblem("TooLarge", f"the body is larger than {most:,} bytes", Connection="close")

"""Offers: how a claim for a worker at a distance is spelled: every row says whose it is, and whether it was heard of.

A worker without a database gets its jobs from a server. What the server claims for it is an *offer* until the worker
has acknowledged it: nobody heard of it if the answer was lost, and a janitor returns it soon, uncharged. Both facts
stand in the ids that are stored anyway:

    incarnation  KEYID.NONCE     the key by which it registered (8 characters, as `model.keys` spells them)
    claim        wNUMBER-NONCE~  offered to worker NUMBER; acknowledged without the last sign

The claim id is part of the fence, so an acknowledgement changes the fence: what was acknowledged is never returned as
overdue, and what was returned can no longer be acknowledged. And a worker that names an attempt names the worker that
it was claimed for: a server sees without a question whether that is the one who asks.

A payload that is too large for an offer comes by itself, once the offer was acknowledged. In its place stands its
digest: the server verified the payload that it offered, and what is read again later may be another one by then.
"""

from __future__ import annotations

import re
from typing import Final

#: Behind the id of a claim that nobody has acknowledged; offers.sql knows it too.
_UNHEARD: Final = "~"
#: In the place of a key's id where a server on this machine needs no key.
NO_KEY: Final = "loopback"
_NONCE = re.compile(r"[0-9a-f]{32}", re.ASCII)
#: Before a digest in the place of a payload; no JSON begins so.
_LEFT_OUT: Final = "sha256:"


def claim_id(worker: int, nonce: str) -> str:
    return f"w{worker}-{nonce}"


def offered(claim: str) -> str:
    """The same claim before it is acknowledged."""
    return claim + _UNHEARD


def is_unheard(claim: str) -> bool:
    """Whether nobody has acknowledged it yet: no body of it has begun."""
    return claim.endswith(_UNHEARD)


def is_claim_of(worker: int, claim: str) -> bool:
    """Whether an acknowledged claim is this worker's."""
    beginning = claim_id(worker, "")
    return claim.startswith(beginning) and _NONCE.fullmatch(claim[len(beginning) :]) is not None


def left_out(payload: str) -> str:
    """What stands in the place of a payload that comes by itself."""
    import hashlib

    # As the wire writes what UTF-8 cannot say.
    return _LEFT_OUT + hashlib.sha256(payload.encode(errors="replace")).hexdigest()


def is_left_out(payload: str) -> bool:
    return payload.startswith(_LEFT_OUT)


def remote_incarnation(key: str | None, nonce: str) -> str:
    return f"{key or NO_KEY}.{nonce}"


def key_of(incarnation: str) -> str | None:
    """The id of the key by which it registered; None: it has the database itself."""
    key, point, nonce = incarnation.partition(".")
    return key if point and _NONCE.fullmatch(nonce) else None

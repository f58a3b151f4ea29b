"""A call as text in one go, where the types of its parameters say all that must be known of its values.

`model.payload.encode` looks at every value, and its encoder is slow. msgspec writes the same text twenty times as
fast, but for what is looked for here in the text; there, and wherever else there is doubt, the answer is None, and
`encode` decides.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from unstuck.model.payload import MAX_DEPTH, MAX_DIGITS

_UNSURE = (
    *(msgspec.inspect.AnyType, msgspec.inspect.CustomType),
    *(msgspec.inspect.RawType, msgspec.inspect.ExtType),
)
_MADE_BY_CODE = (msgspec.inspect.DataclassType, msgspec.inspect.StructType)
_EMPTY = (msgspec.NODEFAULT, list, dict, set, frozenset, tuple, str, bytes, int, bool)
#: NaN becomes null; of very large and very small numbers the two encoders have other spellings.
_ODD_FLOATS = re.compile(rb"null|\de|0\.0000")
_ENCODER = msgspec.json.Encoder()


def written(call: Any, *, has_floats: bool) -> str | None:
    """The same text as `encode` makes of it, or None. Its values are JSON's own, or of types that `is_sure`."""
    text = _ENCODER.encode(call)
    if (
        len(text) > MAX_DIGITS  # what is shorter has no number that is too long
        or b"\\u0000" in text
        or (has_floats and _ODD_FLOATS.search(text) is not None)
        or text.count(b"[") + text.count(b"{") > MAX_DEPTH
    ):
        return None
    return text.decode()


def is_sure(parts: list[msgspec.inspect.Type]) -> bool:
    """Whether a checked value of a type that is made of these is written as it is. Keys that are no text may become
    the same as text, and code of the user's own may put into an object what its type does not say."""
    return not any(
        isinstance(part, _UNSURE)
        or (isinstance(part, msgspec.inspect.DictType) and not isinstance(part.key_type, msgspec.inspect.StrType))
        or _has_own_code(part)
        for part in parts
    )


def may_hold_floats(parts: list[msgspec.inspect.Type]) -> bool:
    return any(isinstance(part, (*_UNSURE, msgspec.inspect.FloatType)) or _may_make_floats(part) for part in parts)


def _may_make_floats(part: msgspec.inspect.Type) -> bool:
    """A class, whatever its types say: nobody checks its defaults, nor what its own code puts into an object."""
    fields = getattr(part, "fields", ())
    return _has_own_code(part) or any(isinstance(field.default, float) for field in fields)


def _has_own_code(part: msgspec.inspect.Type) -> bool:
    """That runs whenever an object is made; what the builtin factories make is empty."""
    return isinstance(part, _MADE_BY_CODE) and (
        hasattr(part.cls, "__post_init__") or any(field.default_factory not in _EMPTY for field in part.fields)
    )

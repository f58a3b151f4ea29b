"""What a process of ours logs for machines: one JSON object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from unstuck.model.address import masked
from unstuck.model.keys import KEY_BEGINNING, without_keys

#: What ends a line, moves a cursor or turns the writing around, and is not escaped by JSON itself.
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def object_line(facts: Mapping[str, object]) -> str:
    """Nothing in it ends the line or moves a cursor; and passwords in addresses, and keys of ours, that a text
    happens to quote are not in it."""
    shown = {name: scrubbed(value) if isinstance(value, str) else value for name, value in facts.items()}
    text = json.dumps(shown, ensure_ascii=False, default=lambda value: scrubbed(str(value)))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def scrubbed(text: str) -> str:
    """Line by line: an address ends with its line, whatever follows."""
    if "://" in text or "pass" in text.lower():
        text = "\n".join(masked(line) for line in text.split("\n"))
    return without_keys(text) if KEY_BEGINNING in text else text

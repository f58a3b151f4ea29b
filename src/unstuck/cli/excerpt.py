"""A traceback as the author of the app wants it: without the frames of the engine that called the handler."""

from __future__ import annotations

import re

_FRAME = re.compile(r'  File "(?P<file>[^"]*)", line ')
_CARRIERS = re.compile(r"unstuck[/\\](?:executor|cli)[/\\]|[/\\]importlib[/\\]__init__\.py$|^<frozen ")
_OURS = re.compile(r"^unstuck\.model\.errors\.\w+: ")
_HEADER = "Traceback (most recent call last):"


def users_part(text: str) -> str:
    """What a traceback says about the user's own code; of one that never got there, the error alone."""
    kept: list[str] = []
    in_carrier = False
    for line in text.strip().splitlines():
        if frame := _FRAME.match(line):
            in_carrier = _CARRIERS.search(frame["file"]) is not None
        elif not line.startswith("    "):  # the source line and its markers belong to the frame above
            in_carrier = False
        if not in_carrier:
            kept.append(_OURS.sub("", line))
    return "\n".join(line for line, after in zip(kept, [*kept[1:], ""], strict=True) if not _is_idle(line, after))


def _is_idle(line: str, after: str) -> bool:
    return line == _HEADER and not after.startswith("  ")


def shortened(stack: str, lines: int = 8) -> list[str]:
    """The end of a stack, where the job was; how it got there is told on demand."""
    kept = stack.rstrip().splitlines()
    if len(kept) <= lines + 1:
        return kept
    tail = kept[-lines:]
    while len(tail) > 1 and not tail[0].startswith("  File "):  # a source line without its frame says little
        tail.pop(0)
    if not tail[0].startswith("  File "):
        tail = kept[-lines:]
    return [f"… ({len(kept) - len(tail)} lines before; --all shows all)", *tail]


def told(what: str, text: str) -> str:
    """A sentence and its traceback: on one line if one line is all there is."""
    part = users_part(text)
    return f"{what}:\n{part}" if "\n" in part else f"{what}: {part}"

"""What the ended children of a gather give: their results, or ChildrenFailed."""

from __future__ import annotations

import json
from typing import Any

from unstuck.model.errors import ChildrenFailed, InvalidInput
from unstuck.model.waits import ChildEnd


def results_of(payload: str | None) -> list[Any]:
    ends = json.loads(payload or "[]")
    failed = [
        ChildEnd(end["id"], end["state"], end.get("error_type"), end.get("error_message"))
        for end in ends
        if end["state"] != "COMPLETED"
    ]
    if failed:
        shown = "; ".join(_told(end) for end in failed[:5]) + ("; …" if len(failed) > 5 else "")
        raise ChildrenFailed(f"{len(failed)} of {len(ends)} children did not complete: {shown}", failed)
    if any(end.get("too_large") for end in ends):
        raise InvalidInput(f"the results of {len(ends)} children are too large together: gather fewer at a time")
    return [end.get("result") for end in ends]


def _told(end: ChildEnd) -> str:
    problem = ": ".join(part for part in (end.error_type, end.error_message) if part)
    return f"{end.id} {end.state}" + (f" ({problem[:200]})" if problem else "")

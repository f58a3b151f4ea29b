"""What a zygote is started with. Apart from the zygote itself: its supervisor needs nothing of what runs handlers."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Literal

from unstuck.records import dataclass

LEASE_OVER = "the worker's lease had run out"


@dataclass(frozen=True, slots=True)
class ZygoteSetup:
    """What a zygote is started with; `control` is inherited. A guard takes over the terms of the zygote that it was,
    and its page."""

    app: str
    incarnation: str
    supervisor: int
    control: int
    role: Literal["import", "guard"] = "import"
    page: int = -1
    terms: str = ""

    def argv(self) -> list[str]:
        return [sys.executable, "-m", "unstuck.executor.zygote", json.dumps(asdict(self))]

"""Who asks, as the program says in which the API is mounted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from unstuck.operations.table import Caller, Role
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class Who:
    """Whoever asks, as the program knows in which we are mounted: `app.asgi(auth=…)` answers with it. `tenant`: the
    only one that they may see; None: any."""

    by: str
    role: Role | str = Role.READER
    tenant: str | None = None

    def caller(self, base: Caller) -> Caller:
        tenant = base.tenant if self.tenant is None else None
        # Like a key without the scope to name somebody else as the one who asks.
        return replace(base, by=self.by, role=Role(self.role), bound=self.tenant, tenant=tenant, key="")


#: Asked with the ASGI scope; None: nobody that it knows.
Auth = Callable[[Mapping[str, Any]], Who | None]

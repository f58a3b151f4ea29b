"""Search by argument: no index knows what payloads hold, so they are read, a bounded number of them at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from unstuck.model.call import WantedArgument
from unstuck.store.database import Transaction

#: Payloads that one call looks at, and their characters: the first bound that is reached ends it.
MOST_PAYLOADS = 2000
MOST_CHARACTERS = 16 << 20
#: A payload may have a mebibyte: so many are read at a time.
AT_ONCE = 50


class ArgumentSearch:
    """One call's search; `looked` counts the payloads it has read."""

    def __init__(self, t: Transaction, argument: WantedArgument) -> None:
        self._t = t
        self._argument = argument
        self._schemas: dict[tuple[str, str], dict[str, Any]] = {}
        self._characters = 0
        self.looked = 0

    @property
    def is_over(self) -> bool:
        return self.looked >= MOST_PAYLOADS or self._characters >= MOST_CHARACTERS

    def among(self, jobs: Sequence[int]) -> Iterator[tuple[int, bool]]:
        """Of each in turn whether it has the argument, as far as the search goes."""
        for first in range(0, len(jobs), AT_ONCE):
            some = jobs[first : first + min(AT_ONCE, MOST_PAYLOADS - self.looked)]
            calls = {row["id"]: row for row in self._t.all("calls_by_number", jobs=list(some))}
            for job in some:
                call = calls.get(job)
                self.looked += 1
                self._characters += 0 if call is None else len(call["payload"])
                yield job, call is not None and self._has(call["tenant"], call["workflow"], call["payload"])
            if self.is_over:
                return

    def _has(self, tenant: str, workflow: str, payload: str) -> bool:
        try:
            call = msgspec.json.decode(payload)
        except (msgspec.DecodeError, RecursionError):
            return False  # its row was damaged: no worker could read it either
        return self._argument.is_in(call, self._schema(tenant, workflow))

    def _schema(self, tenant: str, workflow: str) -> dict[str, Any]:
        """Of the version that the doors go by; nothing where nobody has registered it."""
        place = (tenant, workflow)
        if place not in self._schemas:
            row = self._t.one("workflow", name=workflow, tenant=tenant)
            self._schemas[place] = {} if row is None else json.loads(row["schema"])
        return self._schemas[place]

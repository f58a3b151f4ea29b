"""Whether what events hold is what `views/events.py` says of their kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unstuck.model.job import EventRecord
from unstuck.store.port import FeedEvent, JobFilter, Store
from unstuck.views.events import DATA, data_of, kind_of


def check_events(events: Iterable[EventRecord | FeedEvent]) -> set[str]:
    """Each of them; the kinds that were seen."""
    seen = set()
    for event in events:
        data_of(event.kind, event.data)
        strange = event.data.keys() - set(DATA[kind_of(event.kind)].__struct_fields__)
        assert not strange, f"{event.kind} has {sorted(strange)}, which views/events.py does not know: {event.data}"
        seen.add(event.kind)
    return seen


def histories(store: Store, tenant: str = "default", most: int = 200) -> Iterator[EventRecord]:
    """Of the newest jobs."""
    for job in store.jobs(tenant, JobFilter(), most).jobs:
        yield from store.history(tenant, job.id)

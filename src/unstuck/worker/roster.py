"""The roster: executor processes as the supervisor's books have them, and who sits where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from unstuck.model.job import AttemptRef
from unstuck.worker.ledger import Holding, Stage
from unstuck.worker.processes import ExecutorView, ProcessState


@dataclass(slots=True)
class Post:
    """One executor. `alone`: it takes a single job at a time."""

    number: int
    alone: bool
    since: float
    slots: int = 1
    state: ProcessState = "starting"
    pid: int = 0
    pulse_age: float = 0.0
    jobs_done: int = 0
    memory: int = 0
    idle_since: float = 0.0
    #: Why it was told to go: what its death means for its jobs depends on it.
    killed: str = ""
    holdings: dict[AttemptRef, Holding] = field(default_factory=dict)

    @property
    def bodies(self) -> list[Holding]:
        return [h for h in self.holdings.values() if h.has_body]

    @property
    def live(self) -> list[Holding]:
        """Those that hold a slot: not the stuck and the revoked."""
        return [h for h in self.holdings.values() if h.stage < Stage.STUCK]

    @property
    def load(self) -> int:
        return len(self.holdings)

    def is_feedable(self, unresponsive: float) -> bool:
        return self.state == "active" and not self.killed and self.pulse_age < unresponsive


class Roster:
    """Owned by the supervisor's main thread."""

    def __init__(self) -> None:
        self.posts: dict[int, Post] = {}
        self._last = 0

    def open(self, alone: bool, now: float, slots: int = 1) -> Post:
        self._last += 1
        post = Post(self._last, alone, since=now, slots=slots, idle_since=now)
        self.posts[post.number] = post
        return post

    def close(self, number: int) -> Post | None:
        return self.posts.pop(number, None)

    def seat(self, post: Post, holdings: Iterable[Holding], now: float) -> None:
        for holding in holdings:
            holding.stage = Stage.FED
            holding.executor = post.number
            holding.fed_at = now
            post.holdings[holding.ref] = holding

    def unseat(self, holding: Holding, now: float) -> None:
        """It has ended there: its slot is free."""
        post = self.posts.get(holding.executor or 0)
        if post is not None and holding.ref in post.holdings:
            del post.holdings[holding.ref]
            post.idle_since = now

    def look(self, views: Iterable[ExecutorView], now: float) -> None:
        for view in views:
            post = self.posts.get(view.executor)
            if post is None:
                continue
            post.pid, post.pulse_age = view.pid, view.pulse_age
            post.jobs_done, post.memory = view.jobs_done, view.memory
            if post.state != "draining" or view.state == "exited":
                post.state = view.state
            for ref, at in view.unsaid.items():
                if (holding := post.holdings.get(ref)) and holding.stage is Stage.FED:
                    holding.begin(at, now)

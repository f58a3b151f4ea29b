"""The roster: the executor processes, as the supervisor knows them, and which attempt is in which."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import field
from itertools import islice

from unstuck.model.job import AttemptRef
from unstuck.records import dataclass
from unstuck.worker.ledger import HeldAttempt, Stage
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
    generation: int = 1
    #: Warm, and fed with nothing before it is promoted.
    is_spare: bool = False
    #: Why it drains, for people, and since when.
    reason: str = ""
    draining_since: float | None = None
    #: Why it was killed, when, and whose fault that is: what its death means for its jobs depends on it.
    killed: str = ""
    killed_at: float = 0.0
    culprit: AttemptRef | None = None
    terminated_at: float | None = None
    #: How often in a row it was continued after it had been stopped, and when last.
    continued: int = 0
    continued_at: float = 0.0
    #: The attempts that were in it each of these times: only one of them can be stopping it again and again.
    continued_with: frozenset[AttemptRef] | None = None
    #: What jobs of it left running behind them: why it is to be replaced, and how much there is.
    left_behind: str = ""
    leftovers: int = 0
    #: Since when it is above its memory limit; whether its memory was looked at since it was ready.
    over_since: float | None = None
    is_weighed: bool = False
    #: Takes no jobs before it was weighed, and has outlived its trial if there is one (see starts): a
    #: process that is too large or ill from its start would take them with it.
    is_barred: bool = False
    ready_at: float | None = None
    trial_until: float | None = None
    has_finished: bool = False
    #: The workflow of the job that ended in it last: it may have broken its process, and returned.
    last_ended: str = ""
    #: It died young, and so did one before it: its start may be what it died of.
    is_another: bool = False
    is_vacated: bool = False
    # Read off the process without its help; see ExecutorView.
    loop_age: float = 0.0
    on_loop: AttemptRef | None = None
    on_main: frozenset[AttemptRef] = frozenset()
    holder: AttemptRef | None = None
    is_stopped: bool = False
    is_starved: bool = False
    holdings: dict[AttemptRef, HeldAttempt] = field(default_factory=dict)

    @property
    def bodies(self) -> list[HeldAttempt]:
        return [h for h in self.holdings.values() if h.has_body]

    @property
    def has_neighbours(self) -> bool:
        """Whether there is more than one body in it; asked often, so it counts no further."""
        return len(list(islice((h for h in self.holdings.values() if h.has_body), 2))) > 1

    @property
    def times_continued(self) -> int:
        """In a row, that is: if nobody in it was there each of these times, the last stop was another's doing."""
        is_others = self.continued_with is not None and self.continued_with.isdisjoint(h.ref for h in self.bodies)
        return 0 if is_others else self.continued

    def note_continued(self, now: float) -> None:
        present, before = frozenset(h.ref for h in self.bodies), self.times_continued
        self.continued, self.continued_at = before + 1, now
        self.continued_with = present & (self.continued_with or present) if before else present

    @property
    def has_leftovers(self) -> bool:
        """Whether something may run in it that belongs to no job in it."""
        return bool(self.left_behind or self.leftovers)

    @property
    def is_untouched(self) -> bool:
        """No job has been in it: what it is, it is by its start."""
        return self.jobs_done == 0 and not self.holdings

    @property
    def live(self) -> list[HeldAttempt]:
        """Those that hold a slot: not the stuck and the revoked."""
        return [h for h in self.holdings.values() if h.stage < Stage.STUCK]

    @property
    def load(self) -> int:
        return len(self.holdings)

    def is_feedable(self, unresponsive: float) -> bool:
        is_open = self.state == "active" and not (self.killed or self.is_spare or self.is_barred)
        return is_open and self.pulse_age < unresponsive

    def has_live_loop(self, unresponsive: float) -> bool:
        """Whether a coroutine that is put there would run."""
        return self.loop_age < unresponsive


@dataclass(frozen=True, slots=True)
class Recycled:
    """A process that has ended. `at` is for people: by the wall clock, ISO."""

    pid: int
    generation: int
    reason: str
    jobs_done: int
    at: str


class Roster:
    """Owned by the supervisor's main thread."""

    def __init__(self) -> None:
        self.posts: dict[int, Post] = {}
        self._last = 0
        #: The generations of those whose places nobody has taken yet.
        self._vacated: deque[int] = deque(maxlen=1000)

    def open(self, alone: bool, now: float, slots: int = 1, *, is_spare: bool = False) -> Post:
        self._last += 1
        post = Post(self._last, alone, since=now, slots=slots, idle_since=now, is_spare=is_spare)
        if not (alone or is_spare):
            self._inherit(post)
        self.posts[post.number] = post
        return post

    def promote(self, number: int) -> Post | None:
        post = self.posts.get(number)
        if post is not None and post.is_spare:
            post.is_spare = False
            self._inherit(post)
        return post

    def vacate(self, post: Post) -> None:
        """It takes no more jobs: its place is free for the next generation."""
        if not (post.is_vacated or post.alone or post.is_spare):
            post.is_vacated = True
            self._vacated.append(post.generation)

    def _inherit(self, post: Post) -> None:
        if self._vacated:
            post.generation = self._vacated.popleft() + 1

    def close(self, number: int) -> Post | None:
        post = self.posts.pop(number, None)
        if post is not None:
            self.vacate(post)
        return post

    def of_pid(self, pid: int) -> Post | None:
        return next((post for post in self.posts.values() if post.pid == pid), None)

    def seat(self, post: Post, holdings: Iterable[HeldAttempt], now: float) -> None:
        for holding in holdings:
            holding.stage = Stage.FED
            holding.executor = post.number
            holding.fed_at = now
            post.holdings[holding.job.ref] = holding

    def unseat(self, holding: HeldAttempt, now: float) -> None:
        """It has ended there: its slot is free."""
        post = self.posts.get(holding.executor or 0)
        if post is not None and post.holdings.pop(holding.ref, None) is not None:
            post.idle_since = now

    def look(self, views: Iterable[ExecutorView], now: float) -> None:
        for view in views:
            post = self.posts.get(view.executor)
            if post is None:
                continue
            post.pid, post.pulse_age = view.pid, view.pulse_age
            post.jobs_done, post.memory = view.jobs_done, view.memory
            post.loop_age, post.on_loop, post.on_main = view.loop_age, view.on_loop, view.on_main
            post.holder, post.is_stopped, post.is_starved = view.holder, view.is_stopped, view.is_starved
            if post.state != "draining" or view.state == "exited":
                post.state = view.state
            for ref, at in view.unsaid.items():
                if (holding := post.holdings.get(ref)) and holding.stage is Stage.FED:
                    holding.begin(at, now)

"""Whatever happens in the processes of a worker, in whatever order: nobody is wronged and nobody escapes."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.fake_fleet import FakeFleet
from tests.support.holdings import a_holding
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.worker import actions
from unstuck.worker.act import STACK_WITHIN, ActionRunner
from unstuck.worker.ladder import earns_verdict, is_kept_by_another
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import Seats
from unstuck.worker.plan import MAX_DOOMED, plan
from unstuck.worker.roster import Post
from unstuck.worker.selffence import Fence
from unstuck.worker.state import WorkerState
from unstuck.worker.view import FleetView, WearLimits

TIMES = Times()
GRACE = 4.0
STEP = 0.5


class _NoRequests:
    def ask(self, ask: Any) -> None: ...


class World:
    """Real state and actions; executors that do nothing but die when they are killed."""

    def __init__(self, processes: int, bodies: int) -> None:
        limits = WearLimits(memory_limit=1 << 40)
        self.state = WorkerState(TIMES, Seats(slots=99, processes=processes), limits, Fence.after(1e9, TIMES))
        self.actions = ActionRunner(self.state, FakeFleet(), _NoRequests())  # type: ignore[arg-type]
        self.now = 100.0
        for _ in range(processes):
            post = self.state.roster.open(False, self.now, 4)
            post.state = "active"
            for _ in range(bodies):
                self._seat(post)

    def _seat(self, post: Post) -> None:
        holding = a_holding(at=self.now, timeout="unlimited", grace=GRACE)
        self.state.ledger.admit("", [holding.job], self.now)
        held = self.state.ledger.get(holding.ref)
        assert held is not None
        held.stage, held.started_at, held.executor = Stage.RUNNING, self.now, post.number
        post.holdings[held.ref] = held

    @property
    def posts(self) -> list[Post]:
        return list(self.state.roster.posts.values())

    def bodies(self) -> list[tuple[Post, HeldAttempt]]:
        return [(post, holding) for post in self.posts for holding in post.bodies]

    def tell(self, place: int) -> None:
        bodies = self.bodies()
        if bodies:
            _, holding = bodies[place % len(bodies)]
            if holding.stage is Stage.RUNNING and holding.told_at is None:
                holding.asked, holding.told_at = RequestKind.CANCEL, self.now

    def change(self, place: int, facts: dict[str, Any]) -> None:
        """What can be seen of one process from now on."""
        if not self.posts:
            return
        post = self.posts[place % len(self.posts)]
        refs = [h.ref for h in post.bodies]

        def pick(which: int | None) -> Any:
            return refs[which % len(refs)] if refs and which is not None else None

        post.pulse_age = 0.0 if not facts["silent"] else max(post.pulse_age, facts["silent"])
        post.loop_age = 0.0 if not facts["stalled"] else max(post.loop_age, facts["stalled"])
        post.on_main = frozenset(refs[: facts["on_main"]])
        post.on_loop = pick(facts["on_loop"])
        post.holder = pick(facts["holder"]) if facts["silent"] else None

    def step(self) -> None:
        for post in self.posts:
            if post.killed:  # its death is heard one step later
                self.state.roster.close(post.number)
                for holding in post.holdings.values():
                    self.state.ledger.drop(holding.ref)
        self.now += STEP
        for post in self.posts:
            post.pulse_age += STEP if post.pulse_age else 0.0
            post.loop_age += STEP if post.loop_age else 0.0
        for _ in range(4):
            view = self.state.view(self.now, is_impatient=False)
            planned = list(plan(view, self.now))
            for action in planned:
                self.check(action, view)
            self.state.looked_at = self.now
            for action in planned:
                if not isinstance(action, actions.StartExecutor):
                    self.actions.do(action, self.now)
        assert sum(self._lingers(post) for post in self.posts) <= MAX_DOOMED

    def _lingers(self, post: Post) -> bool:
        return not post.killed and any(h.stage is Stage.STUCK for h in post.bodies)

    def check(self, action: actions.Action, view: FleetView) -> None:
        match action:
            case actions.Convict(ref):
                post = next(p for p in self.posts if ref in p.holdings)
                is_alone = len(post.bodies) == 1
                is_kept = post.loop_age >= TIMES.unresponsive and ref in post.on_main and post.on_loop != ref
                is_late = not is_alone and 0.3 <= post.pulse_age < TIMES.unresponsive
                assert not is_late or post.holder == ref, "convicted before it could be told who keeps the process"
                if not view.is_silent(post):
                    assert not is_kept, "convicted although another blocks its loop"
                else:
                    assert is_alone or post.holder == ref, "convicted although it may not be the one"
            case actions.Kill(executor, actions.FROZEN):
                assert len(self.state.roster.posts[executor].bodies) != 1, "silence alone is no crime"
            case actions.Interrupt(ref):
                post = next(p for p in self.posts if ref in p.holdings)
                assert post.on_loop == ref, "an interrupt for who is not on the main thread"


numbers = st.integers(0, 30)
facts = st.fixed_dictionaries(
    {
        "silent": st.sampled_from([0.0, 0.4, 1.0]),
        "stalled": st.sampled_from([0.0, 0.4, 1.0]),
        "on_main": st.integers(0, 3),
        "on_loop": st.none() | st.integers(0, 2),
        "holder": st.none() | st.integers(0, 2),
    }
)
events = st.lists(
    st.tuples(st.just("tell"), numbers, facts) | st.tuples(st.just("change"), numbers, facts) | st.just(("step",)),
    max_size=60,
)


# Without shrinking: a long story takes longer to shorten than a test may last.
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(processes=st.integers(1, 4), bodies=st.integers(1, 3), asked_first=st.integers(0, 4), story=events)
def test_nobody_is_wronged_and_nobody_escapes(
    processes: int, bodies: int, asked_first: int, story: list[Any]
) -> None:
    """A25, A29"""
    world = World(processes, bodies)
    for place in range(min(processes, asked_first)):
        world.tell(place * bodies)
    for event in story:
        match event:
            case ("tell", place, _):
                world.tell(place)
            case ("change", place, seen):
                world.change(place, seen)
            case _:
                world.step()

    # From here on nothing changes: whoever was told meets his end, unless another is still seen to keep him from it.
    asked = [h for _, h in world.bodies() if earns_verdict(h)]
    for _ in range(int((GRACE + TIMES.frozen + 2 * TIMES.kill_grace) / STEP) + 8):
        world.step()
    view = world.state.view(world.now, is_impatient=False)
    for post, holding in world.bodies():
        if holding in asked and holding.stage is Stage.RUNNING:
            assert is_kept_by_another(view, post, holding)

    # And once nobody does, within his grace, and the moment in which a stack may come that never does here.
    for post in world.posts:
        post.pulse_age = post.loop_age = 0.0
    for _ in range(int((GRACE + STACK_WITHIN) / STEP) + 4):
        world.step()
    assert not [h for _, h in world.bodies() if earns_verdict(h)]

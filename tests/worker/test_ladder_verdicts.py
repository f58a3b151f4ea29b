"""Who an attack on the ladder wronged, and what it let escape: each of them once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.fake_fleet import FakeFleet
from tests.support.holdings import a_holding, a_post, a_view
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Returned, Stuck
from unstuck.model.times import Times
from unstuck.store.port import WorkerOrder
from unstuck.worker import actions
from unstuck.worker.act import ActionRunner
from unstuck.worker.actions import Action, Convict, Drain, Dump, Excuse, Interrupt, Kill, StartExecutor
from unstuck.worker.fleet_events import FleetEventHandler
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.mailbox import LeaseLost, Mailbox, MailboxReader
from unstuck.worker.orders import Orders
from unstuck.worker.placing import Seats
from unstuck.worker.plan import plan
from unstuck.worker.processes import ExecutorReady, ExecutorView, Finished, Imported, LeftBehind
from unstuck.worker.roster import Post
from unstuck.worker.selffence import Fence
from unstuck.worker.shutdown import Shutdown
from unstuck.worker.state import WorkerState
from unstuck.worker.threads import Activity, Look, SilenceProbe, StallProbe, holder
from unstuck.worker.view import WearLimits

TIMES = Times()
LIMIT = 100 << 20


def told(at: float = 100.0, grace: float = 10.0, **facts: Any) -> HeldAttempt:
    """Asked to stop at that time, its stack taken in time for the verdict."""
    holding = a_holding(at=0.0, timeout="unlimited", grace=grace, **facts)
    holding.asked, holding.told_at, holding.dumped_at = RequestKind.CANCEL, at, at + grace - 0.01
    return holding


def running() -> HeldAttempt:
    return a_holding(at=99.0, timeout="unlimited")


def planned(post: Post, now: float, **facts: Any) -> list[Action]:
    return list(plan(a_view(post, **facts), now))


def only(kind: type[Action], found: list[Action]) -> list[Action]:
    return [action for action in found if isinstance(action, kind)]


# --- interrupts -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("grace", "every"), [(10.0, 2.0), (2.0, 0.6), (0.2, 0.06)])
def test_also_a_short_grace_has_room_for_a_second_interrupt(grace: float, every: float) -> None:
    me = told(at=100.0, grace=grace)
    post = a_post(1, me, running(), on_main=frozenset({me.ref}), on_loop=me.ref)
    me.interrupted_at = 100.0 + grace / 2

    assert only(Interrupt, planned(post, now=me.interrupted_at + every - 0.01)) == []
    assert only(Interrupt, planned(post, now=me.interrupted_at + every + 0.01)) == [Interrupt(me.ref)]


# --- memory -----------------------------------------------------------------------------------------------------
LIMITS = WearLimits(memory_limit=LIMIT)


def an_early_verdict() -> Post:
    me = told(at=100.0, grace=100.0)
    me.dumped_at = None
    return a_post(1, me)


def a_silence() -> Post:
    return a_post(1, running(), running(), pulse_age=2.0)


def a_stall() -> Post:
    blocker, other = running(), running()
    on_main = frozenset({blocker.ref, other.ref})
    return a_post(1, blocker, other, on_main=on_main, on_loop=blocker.ref, loop_age=2.0)


@pytest.mark.parametrize("found", [an_early_verdict, a_silence, a_stall])
def test_a_stack_that_is_due_later_does_not_put_off_the_memory_limit(found: Any) -> None:
    post = found()
    post.memory, post.over_since = LIMIT, 120.0
    bodies = tuple(h.ref for h in post.bodies)

    assert only(Dump, planned(post, now=120.0, limits=LIMITS)) == [Dump(1, bodies)]
    for holding in post.bodies:
        holding.dumped_at = 120.0
    assert only(Kill, planned(post, now=120.4, limits=LIMITS)) == [Kill(1, actions.OVER_MEMORY)]
    assert only(Dump, planned(post, now=120.4, limits=LIMITS)) == []


def test_above_the_memory_limit_the_kill_waits_no_longer_than_two_dumps_may_take() -> None:
    post = a_post(1, running(), memory=LIMIT, over_since=120.0)
    assert only(Kill, planned(post, now=120.45, limits=LIMITS)) == []
    assert only(Kill, planned(post, now=120.5, limits=LIMITS)) == [Kill(1, actions.OVER_MEMORY)]


def books_with(limits: WearLimits) -> WorkerState:
    return WorkerState(TIMES, Seats(slots=4, processes=1), limits, Fence.after(1e9, TIMES))


def seen(executor: int, memory: int, state: Any = "active", **facts: Any) -> ExecutorView:
    return ExecutorView(executor, 7, state, 0.0, 0.0, 0, memory, (), (), **facts)


def test_the_state_knows_since_when_a_process_is_above_its_memory_limit() -> None:
    state = books_with(LIMITS)
    post = state.roster.open(False, 0.0)
    ages = []
    for now, memory in ((1.0, LIMIT - 1), (2.0, LIMIT), (3.0, LIMIT + 1), (4.0, 5), (5.0, LIMIT)):
        state.look([seen(1, memory)], now)
        ages.append(post.over_since)
    assert ages == [None, 2.0, 2.0, None, 5.0]


class _NoRequests:
    def ask(self, ask: Any) -> None: ...


def runner_on(state: WorkerState) -> ActionRunner:
    return ActionRunner(state, FakeFleet(), _NoRequests())  # type: ignore[arg-type]


def test_how_often_it_was_interrupted_is_counted_by_the_runner_that_does_it() -> None:
    """The pause before the next one depends on it."""
    state = books_with(LIMITS)
    holding = told(at=100.0)
    state.ledger.admit("", [holding.job], 100.0)
    held = state.ledger.get(holding.ref)
    assert held is not None
    for now in (105.0, 107.0):
        runner_on(state).do(Interrupt(holding.ref), now)
    assert (held.interrupts, held.interrupted_at) == (2, 107.0)


def look_and_act(state: WorkerState, actions: ActionRunner, now: float) -> list[Action]:
    found = list(plan(state.view(now, is_impatient=False), now))
    for action in found:
        actions.do(action, now)
    return found


def started(state: WorkerState, now: float) -> Post:
    post = state.roster.open(False, now, 4)
    FleetEventHandler(state, None, None, None, ()).hear(ExecutorReady(post.number, 7), now)  # type: ignore[arg-type]
    state.imported = Imported((), "", "fork", "")
    return post


def test_a_process_that_is_above_the_memory_limit_before_any_job_is_a_failed_start() -> None:
    state = books_with(WearLimits(memory_limit=5 << 20))
    runner = runner_on(state)
    rests = []
    now = 100.0
    for _ in range(3):
        post = started(state, now)
        assert state.feedable() == [], "fed before it was weighed"
        state.look([seen(post.number, 30 << 20)], now)
        assert state.feedable() == []
        assert only(Kill, look_and_act(state, runner, now)) == [Kill(post.number, actions.OVER_MEMORY)]
        assert not state.is_ready(now)
        assert "uses 30 MiB before any job; memory_limit is 5 MiB" in (state.start_error or "")
        rests.append(state.spawn_from - now)
        state.roster.close(post.number)
        assert only(StartExecutor, list(plan(state.view(now, is_impatient=False), now))) == []
        now = state.spawn_from
    assert rests == sorted(rests)
    assert rests[0] < rests[-1]


def test_one_that_is_light_enough_ends_the_trouble() -> None:
    state = books_with(LIMITS)
    state.start_error, state.failed_spawns = "it uses too much", 3
    post = started(state, 100.0)
    assert state.start_error is not None
    state.look([seen(post.number, LIMIT - 1)], 100.1)
    found = (str(state.start_error), state.failed_spawns, state.is_ready(100.1))
    assert found == ("None", 0, True)
    assert state.feedable() == [post]


def test_a_process_that_has_run_jobs_and_is_above_the_limit_is_no_failed_start() -> None:
    state = books_with(LIMITS)
    post = started(state, 100.0)
    state.look([seen(post.number, 1)], 100.0)
    post.memory, post.jobs_done, post.over_since = LIMIT, 1, 100.0
    look_and_act(state, runner_on(state), 100.0)
    assert (post.killed, state.start_error) == (actions.OVER_MEMORY, None)


def test_what_is_above_max_memory_before_any_job_is_reported_once_and_not_replaced(caplog: Any) -> None:
    state = books_with(WearLimits(max_memory=5 << 20))
    runner = runner_on(state)
    for number in (1, 2):
        post = started(state, 100.0)
        state.look([seen(number, 30 << 20)], 100.0)
        assert only(Drain, look_and_act(state, runner, 100.0)) == []
    assert caplog.text.count("heavy_start") == 1
    post.jobs_done = 1
    assert len(only(Drain, look_and_act(state, runner, 100.0))) == 1


# --- what an ended job left behind ------------------------------------------------------------------------------
def test_the_only_coroutine_is_excused_while_something_else_blocks_its_loop() -> None:
    """A29: a callback that an ended job left on the loop."""
    me = told(at=100.0)
    post = a_post(1, me, on_main=frozenset({me.ref}), on_loop=None, loop_age=5.0)

    found = planned(post, now=110.0, looked_at=109.95)
    assert only(Convict, found) == []
    assert len(only(Excuse, found)) == 1
    post.loop_age = 35.0
    assert only(Kill, planned(post, now=140.0, looked_at=139.95)) == [Kill(1, actions.STALLED_LOOP)]
    post.on_loop, post.loop_age = me.ref, 5.0
    assert only(Convict, planned(post, now=110.0, looked_at=109.95)) == [Convict(me.ref)]


@pytest.mark.parametrize("leftover", [{"left_behind": "w left 1 running behind it"}, {"leftovers": 1}])
def test_the_only_body_of_a_silent_process_with_leftovers_is_a_suspect(leftover: dict[str, Any]) -> None:
    """A29: a leaked thread may be the one that holds the interpreter."""
    me = told(at=100.0)
    post = a_post(1, me, pulse_age=5.0, **leftover)

    found = planned(post, now=110.0, looked_at=109.95)
    assert only(Convict, found) == []
    assert only(Kill, found) == [Kill(1, actions.FROZEN)]
    post.holder = me.ref
    assert only(Convict, planned(post, now=110.0, looked_at=109.95)) == [Convict(me.ref)]


def test_the_only_body_of_a_silent_process_is_convicted_if_nobody_else_can_be_the_one() -> None:
    """A25"""
    me = told(at=100.0)
    found = planned(a_post(1, me, pulse_age=5.0), now=110.0, looked_at=109.95)
    assert only(Convict, found) == [Convict(me.ref)]


def test_a_silent_process_is_looked_at_for_another_second_before_nobody_is_convicted_of_it() -> None:
    """A29: on a busy machine it takes longer to see who holds the interpreter, and eight jobs would be suspects."""
    me, other = told(at=100.0), running()
    post = a_post(1, me, other, pulse_age=1.5)
    assert only(Kill, planned(post, now=110.0, looked_at=109.95)) == []
    post.pulse_age = 2.1
    assert only(Kill, planned(post, now=110.6, looked_at=110.55)) == [Kill(1, actions.FROZEN)]


def test_the_verdict_waits_a_moment_for_a_stack_that_is_on_its_way() -> None:
    """A25: on a busy machine it takes longer than the moment it was asked for ahead."""
    stacks = []
    for comes_at, last in ((110.05, 110.05), (115.0, 110.8)):
        state, fleet = books_with(WearLimits()), FakeFleet()
        runner = ActionRunner(state, fleet, _NoRequests())  # type: ignore[arg-type]
        post = started(state, 0.0)
        state.ledger.admit("", [a_holding().job], 0.0)
        (me,) = state.ledger.take_fresh()
        state.roster.seat(post, [me], 0.0)
        me.stage, me.dumped_at = Stage.RUNNING, 109.75
        for now in (110.0, last):
            assert state.reports == []
            if now >= comes_at:
                fleet.stacks[me.ref] = "where it was"
            runner.do(Convict(me.ref), now)
        (report,) = state.reports
        assert isinstance(report.outcome, Stuck)
        stacks.append(report.outcome.error.stack)
    assert stacks == ["where it was", "no stack: process 7 did not show one"]


def test_after_a_sleep_of_the_machine_silence_counts_from_its_end() -> None:
    """A29: executors slept as well, and their pulses are as old as ours: the next look comes before the next."""
    state = books_with(WearLimits())
    post = started(state, 0.0)
    for job in (a_holding(), a_holding()):
        job.stage, job.executor = Stage.RUNNING, post.number
        post.holdings[job.ref] = job
    frozen_at, killed = 140.0 + TIMES.frozen, []
    for before, now in ((100.0, 140.0), (140.0, 140.05), (frozen_at - 0.1, frozen_at - 0.05), (frozen_at, frozen_at)):
        state.looked_at = before
        state.look([replace(seen(post.number, 5), pulse_age=now - 100.0, loop_age=now - 100.0)], now)
        found = list(plan(state.view(now, is_impatient=False), now))
        killed += [now for action in found if isinstance(action, Kill)]
    assert killed == [frozen_at]


# --- too early to tell ------------------------------------------------------------------------------------------
#: name -> (facts of the process, whether `me`, whose short grace is over, is convicted)
EARLY: dict[str, tuple[Any, bool]] = {
    "pulse just fresh": (lambda me, other: {"pulse_age": 0.29}, True),
    "pulse stale": (lambda me, other: {"pulse_age": 0.31}, False),
    "pulse stale, another holds": (lambda me, other: {"pulse_age": 0.9, "holder": other}, False),
    "pulse stale, it holds": (lambda me, other: {"pulse_age": 0.9, "holder": me}, True),
    "loop stale, another on it": (
        lambda me, other: {"loop_age": 0.9, "on_main": {me, other}, "on_loop": other},
        False,
    ),
    "loop stale, nobody on it": (lambda me, other: {"loop_age": 0.9, "on_main": {me, other}}, False),
    "loop stale, it is on it": (lambda me, other: {"loop_age": 0.9, "on_main": {me, other}, "on_loop": me}, True),
    "loop stale, it is on a thread": (
        lambda me, other: {"loop_age": 0.9, "on_main": {other}, "on_loop": other},
        True,
    ),
    "loop just fresh": (lambda me, other: {"loop_age": 0.29, "on_main": {me, other}, "on_loop": other}, True),
}


@pytest.mark.parametrize("case", EARLY)
def test_nobody_is_convicted_before_it_can_be_told_who_keeps_the_process(case: str) -> None:
    """A29: a grace shorter than it takes to see a stall."""
    facts, is_convicted = EARLY[case]
    me, other = told(at=100.0, grace=0.5), running()
    given = facts(me.ref, other.ref)
    given["on_main"] = frozenset(given.get("on_main", ()))

    found = planned(a_post(1, me, other, **given), now=100.5, looked_at=100.45)
    assert bool(only(Convict, found)) is is_convicted
    assert bool(only(Excuse, found)) is not is_convicted
    assert only(Kill, found) == []


def test_the_only_body_is_not_waited_for_while_its_pulse_is_stale() -> None:
    me = told(at=100.0, grace=0.5)
    assert only(Convict, planned(a_post(1, me, pulse_age=0.9), now=100.5, looked_at=100.45)) == [Convict(me.ref)]


def test_what_was_not_yet_seen_to_be_a_stall_is_excused_when_it_is() -> None:
    """Else a grace of 0.3 s would be used up before the stall shows, and over when it ends."""
    me, other = told(at=100.0, grace=0.3), running()
    post = a_post(1, me, other, pulse_age=0.32)
    (excuse,) = only(Excuse, planned(post, now=100.3, looked_at=100.25))
    assert isinstance(excuse, Excuse)
    assert (excuse.ref, round(excuse.seconds, 6)) == (me.ref, 0.3)
    later = a_post(1, told(at=99.0, grace=10.0), other, pulse_age=0.32)
    (excuse,) = only(Excuse, planned(later, now=100.3, looked_at=100.25))
    assert isinstance(excuse, Excuse)
    assert excuse.seconds == pytest.approx(0.32)
    later.pulse_age = 0.37
    (excuse,) = only(Excuse, planned(later, now=100.35, looked_at=100.3))
    assert isinstance(excuse, Excuse)
    assert excuse.seconds == pytest.approx(0.05)


# --- who holds the interpreter ----------------------------------------------------------------------------------
CONTROL, MAIN, CREW, JOB, STRANGER = 2, 1, 3, 4, 5
WAITS, SLEEPS, BURNS = (20, 0.001), (0, 0.0), (1, 0.1)


def looks(**threads: tuple[int, float]) -> tuple[Look, Look]:
    names = {"control": CONTROL, "main": MAIN, "crew": CREW, "job": JOB, "stranger": STRANGER}
    before = {names[name]: Activity("S", 1000, 1.0) for name in threads}
    after = {names[name]: Activity("S", 1000 + more, 1.0 + cpu) for name, (more, cpu) in threads.items()}
    return Look(50.0, before), Look(50.1, after)


@pytest.mark.parametrize(
    ("stranger", "job", "expected"),
    [(SLEEPS, SLEEPS, None), (WAITS, SLEEPS, 7), (SLEEPS, BURNS, 7), (BURNS, SLEEPS, None)],
)
def test_a_sleeper_is_not_the_holder_if_a_thread_of_no_job_may_be(
    stranger: tuple[int, float], job: tuple[int, float], expected: int | None
) -> None:
    """A29: an innocent in a long call that leaves the interpreter free, beside a leaked thread that does not."""
    looked = looks(control=WAITS, main=SLEEPS, crew=SLEEPS, job=job, stranger=stranger)
    assert holder(*looked, CONTROL, {JOB: 7}, ours={MAIN, CREW}) == expected

    silence = SilenceProbe(0.0)
    for look in looked:
        silence.look(look, MAIN, CONTROL, {JOB: 7}, {CREW})
    assert silence.holder == expected


@pytest.mark.parametrize(
    ("control", "main", "job", "expected"),
    [
        # The control thread waits for the first sign of a thread that it has just started, which cannot give it.
        (SLEEPS, WAITS, BURNS, 7),
        (SLEEPS, WAITS, SLEEPS, 7),
        # A job told the interpreter to ask its holder for it once a day: nobody is seen to wait.
        (SLEEPS, SLEEPS, BURNS, 7),
        (SLEEPS, SLEEPS, SLEEPS, None),
    ],
)
def test_the_event_loop_is_a_second_witness_that_the_interpreter_is_held(
    control: tuple[int, float], main: tuple[int, float], job: tuple[int, float], expected: int | None
) -> None:
    looked = looks(control=control, main=main, crew=SLEEPS, job=job)
    for is_loop_silent in (True, False):
        silence = SilenceProbe(0.0)
        for look in looked:
            silence.look(look, MAIN, CONTROL, {JOB: 7}, {CREW}, is_loop_silent=is_loop_silent)
        assert silence.is_held is is_loop_silent
        assert silence.holder == (expected if is_loop_silent else None)


def test_who_burns_is_known_on_a_machine_that_hardly_lets_it() -> None:
    """Five hundredths of a core, and the rest of the time in the queue for one."""
    before, after = looks(control=SLEEPS, main=SLEEPS, job=(0, 0.005), stranger=(1, 0.005))
    starved = {t: replace(a, queued_seconds=0.09) for t, a in after.threads.items() if t in (JOB, STRANGER)}
    silence = SilenceProbe(0.0)
    for look in (before, Look(after.at, {**after.threads, **starved})):
        silence.look(look, MAIN, CONTROL, {JOB: 7}, is_loop_silent=True)
    assert silence.holder == 7


def test_who_waits_is_known_on_a_machine_that_hardly_lets_it() -> None:
    """Each wake-up every 5 ms stands in the queue for a core ten times as long: 18 a second, and not 200."""
    before, after = looks(control=(3, 0.001), main=SLEEPS, job=BURNS)
    starved = {**after.threads, CONTROL: replace(after.threads[CONTROL], queued_seconds=0.085)}
    silence = SilenceProbe(0.0)
    for look in (before, Look(after.at, starved)):
        silence.look(look, MAIN, CONTROL, {JOB: 7})
    assert (silence.is_held, silence.holder) == (True, 7)


def test_what_a_short_look_does_not_show_a_longer_one_may() -> None:
    """Two wake-ups say nothing; those of the next look count with them, for as long as the same silence lasts."""
    first, second = looks(control=(2, 0.001), main=SLEEPS, job=BURNS)
    threads = {
        CONTROL: Activity("S", 1004, 1.002, 0.18),
        MAIN: Activity("S", 1000, 1.0),
        JOB: Activity("R", 1002, 1.2),
    }
    third, silence, found = Look(50.2, threads), SilenceProbe(0.0), []
    starved = {**second.threads, CONTROL: replace(second.threads[CONTROL], queued_seconds=0.09)}
    for look in (first, Look(second.at, starved), third):
        silence.look(look, MAIN, CONTROL, {JOB: 7})
        found.append(silence.holder)
    assert found == [None, None, 7]


def test_a_job_on_the_loop_that_holds_the_interpreter_is_known_by_any_thread_that_waits() -> None:
    """The control thread waits for the first sign of a new thread, and that one for the interpreter."""
    silence = SilenceProbe(0.0)
    for look in looks(control=SLEEPS, main=BURNS, stranger=WAITS):
        silence.look(look, MAIN, CONTROL, {MAIN: 8}, is_loop_silent=True)
    assert (silence.is_held, silence.holder) == (True, 8)


def test_what_one_look_cannot_tell_does_not_refute_the_one_before_it() -> None:
    burns = looks(control=WAITS, main=WAITS, job=BURNS, stranger=SLEEPS)
    still = Look(50.2, {**burns[1].threads, CONTROL: Activity("S", 1040, 1.0), MAIN: Activity("S", 1040, 1.0)})
    waits = Look(50.3, {t: Activity("S", a.switches + 20, a.cpu_seconds) for t, a in still.threads.items()})
    silence, found = SilenceProbe(0.0), []
    for look in (*burns, still, waits):
        silence.look(look, MAIN, CONTROL, {JOB: 7})
        found.append(silence.holder)
    assert found == [None, 7, 7, None]


def test_a_loop_that_a_job_blocks_is_no_witness_against_another() -> None:
    """It may sleep there, and leave the interpreter free."""
    silence = SilenceProbe(0.0)
    for look in looks(control=SLEEPS, main=SLEEPS, job=BURNS):
        silence.look(look, MAIN, CONTROL, {JOB: 7, MAIN: 8}, is_loop_silent=True)
    assert (silence.is_held, silence.holder) == (False, None)


@pytest.mark.parametrize(
    ("control", "main", "on_loop", "expected"),
    [
        ("lock", "lock", SLEEPS, 7),
        ("lock", "call", SLEEPS, None),
        ("call", "lock", SLEEPS, None),
        ("lock", "", BURNS, 8),
    ],
)
def test_a_job_on_the_loop_is_no_reason_if_it_waits_for_a_lock_as_the_control_thread_does(
    control: str, main: str, on_loop: tuple[int, float], expected: int | None
) -> None:
    """Nobody is seen to wait: a job has told the interpreter to ask its holder for it once a day."""
    job = SLEEPS if on_loop == BURNS else BURNS
    silence = SilenceProbe(0.0)
    for look in looks(control=SLEEPS, main=on_loop, job=job):
        asleep = {CONTROL: control == "lock", MAIN: main == "lock"}
        threads = {t: replace(a, is_at_lock=asleep.get(t, False)) for t, a in look.threads.items()}
        silence.look(Look(look.at, threads), MAIN, CONTROL, {JOB: 7, MAIN: 8}, is_loop_silent=True)
    assert (silence.is_held, silence.holder) == (expected is not None, expected)


def test_nobody_holds_the_interpreter_of_a_stopped_process() -> None:
    before, after = looks(control=SLEEPS, main=SLEEPS, job=BURNS)
    stopped = Look(after.at, {t: Activity("T", a.switches, a.cpu_seconds) for t, a in after.threads.items()})
    silence = SilenceProbe(0.0)
    for look in (before, stopped):
        silence.look(look, MAIN, CONTROL, {JOB: 7}, is_loop_silent=True)
    assert (silence.is_stopped, silence.is_held, silence.holder) == (True, False, None)


# --- starved processes ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("queued", "expected"), [(0.095, True), (0.02, False)])
def test_a_control_thread_in_the_queue_for_a_core_is_starved(queued: float, expected: bool) -> None:
    before, after = looks(control=(0, 0.0), main=SLEEPS, job=SLEEPS)
    waits = {**after.threads, CONTROL: replace(after.threads[CONTROL], queued_seconds=queued)}
    silence = SilenceProbe(0.0)
    for look in (before, Look(after.at, waits)):
        silence.look(look, MAIN, CONTROL, {JOB: 7})
    assert (silence.is_starved, silence.is_held) == (expected, False)


def test_who_waits_for_the_interpreter_is_not_starved_however_busy_the_machine_is() -> None:
    before, after = looks(control=(3, 0.001), main=SLEEPS, job=BURNS)
    waits = {**after.threads, CONTROL: replace(after.threads[CONTROL], queued_seconds=0.085)}
    silence = SilenceProbe(0.0)
    for look in (before, Look(after.at, waits)):
        silence.look(look, MAIN, CONTROL, {JOB: 7})
    assert (silence.is_starved, silence.holder) == (False, 7)


def test_a_process_that_the_machine_starves_is_not_killed_for_what_nobody_in_it_does() -> None:
    """A29: the grace stands still until it could obey; for its neighbours' sake that has an end."""
    me, other = told(at=100.0, grace=1.0), running()
    post = a_post(1, me, other, pulse_age=2.5)
    assert only(Kill, planned(post, now=103.0, looked_at=102.95)) == [Kill(1, actions.FROZEN)]
    post.is_starved = True
    found = planned(post, now=103.0, looked_at=102.95)
    assert only(Kill, found) == only(Convict, found) == []
    (excuse,) = only(Excuse, found)
    assert isinstance(excuse, Excuse)
    assert (excuse.ref, round(excuse.seconds, 6)) == (me.ref, 0.05)
    post.pulse_age = TIMES.frozen
    assert Kill(1, actions.FROZEN) in planned(post, now=130.0, looked_at=129.95)


@pytest.mark.parametrize(("ran", "expected"), [(0.0005, True), (0.01, False)])
def test_a_holder_that_hardly_gets_a_core_is_starved(ran: float, expected: bool) -> None:
    before, after = looks(control=WAITS, main=(0, ran))
    queued = {**after.threads, MAIN: replace(after.threads[MAIN], queued_seconds=0.095 - ran)}
    silence = SilenceProbe(0.0)
    for look in (before, Look(after.at, queued)):
        silence.look(look, MAIN, CONTROL, {MAIN: 8}, is_loop_silent=True)
    assert (silence.holder, silence.is_starved) == (8, expected)


@pytest.mark.parametrize(("ran", "queued", "expected"), [(0.001, 0.19, True), (0.001, 0.0, True), (0.1, 0.09, False)])
def test_a_loop_stands_still_for_want_of_a_core_only_if_its_thread_is_in_the_queue_for_one(
    ran: float, queued: float, expected: bool
) -> None:
    stall = StallProbe(0.0, Look(50.0, {MAIN: Activity("R", 1000, 1.0)}))
    stall.look(Look(50.2, {MAIN: Activity("R", 1000, 1.0 + ran, queued)}), MAIN)
    assert stall.is_starved is expected


def test_an_interrupt_that_had_no_core_to_arrive_on_convicts_nobody() -> None:
    """A regex in a coroutine gives way to it within milliseconds of CPU time."""
    me, other = told(at=100.0, grace=1.0), running()
    on_main = frozenset({me.ref, other.ref})
    post = a_post(1, me, other, pulse_age=2.5, loop_age=2.5, holder=me.ref, on_loop=me.ref, on_main=on_main)
    assert only(Convict, planned(post, now=103.0, looked_at=102.95)) == [Convict(me.ref)]
    post.is_starved = True
    assert only(Excuse, planned(post, now=100.6, looked_at=100.55)) == [], "it is to be interrupted first"
    assert only(Interrupt, planned(post, now=100.6, looked_at=100.55)) == [Interrupt(me.ref)]
    me.interrupted_at, me.interrupts = 100.6, 1
    found = planned(post, now=103.0, looked_at=102.95)
    assert (only(Convict, found), only(Interrupt, found)) == ([], [Interrupt(me.ref)])
    post.pulse_age, post.holder = 0.1, None
    assert only(Convict, planned(post, now=103.0, looked_at=102.95)) == [], (
        "it has reached it, and the process speaks"
    )
    post.is_starved = False
    assert only(Convict, planned(post, now=103.0, looked_at=102.95)) == [Convict(me.ref)]
    post.pulse_age, post.holder, post.is_starved = 2.5, me.ref, True
    on_a_thread = replace(post, on_loop=None, on_main=frozenset())
    assert only(Convict, planned(on_a_thread, now=103.0, looked_at=102.95)) == [Convict(me.ref)]


def test_alone_in_a_starved_process_it_is_judged_as_ever() -> None:
    me = told(at=100.0, grace=1.0)
    post = a_post(1, me, pulse_age=2.5)
    post.is_starved = True
    assert only(Convict, planned(post, now=103.0, looked_at=102.95)) == [Convict(me.ref)]


# --- poisoned processes -----------------------------------------------------------------------------------------
def test_of_a_poisoned_process_it_is_told_which_workflows_may_have_done_it(caplog: pytest.LogCaptureFixture) -> None:
    """Those in it, and the last that ended there: a job may break its process and return."""
    state = books_with(WearLimits())
    post = started(state, 0.0)
    for name in ("ends", "stays"):
        state.ledger.admit("", [a_holding().job._replace(workflow=name)], 0.0)
    ends, stays = state.ledger.take_fresh()
    state.roster.seat(post, [ends, stays], 0.0)
    stays.stage = Stage.RUNNING
    ears = FleetEventHandler(state, None, None, _NothingKept(), ())  # type: ignore[arg-type]

    with caplog.at_level("WARNING"):
        ears.hear(Finished(post.number, ends.ref, Returned("null"), 5), 1.0)
        ears.hear(LeftBehind(post.number, "", (), poison="no file descriptor is left in it (limit 120)"), 1.1)

    assert post.left_behind == "no file descriptor is left in it (limit 120); jobs in it, or just ended: ends, stays"
    assert "process_poisoned workflow=ends, stays" in caplog.text


class _NothingKept:
    def keep_back(self, report: Any) -> bool:
        return False


# --- orders that cannot be read ---------------------------------------------------------------------------------
def test_an_order_that_cannot_be_read_is_refused_and_takes_no_other_note_with_it() -> None:
    state = books_with(WearLimits())
    state.roster.open(False, 0.0).pid = 9
    answers: list[tuple[int, str, bool]] = []

    def answer(number: int, text: str, *, refused: bool = False) -> None:
        answers.append((number, text, refused))

    orders = Orders(state, FakeFleet(), runner_on(state), Shutdown(TIMES), answer)
    inbox = Mailbox(lambda: None)
    notes = MailboxReader(inbox, state, FakeFleet(), runner_on(state), orders)
    for number, subject in enumerate(("9" * 5000, "９", "-1", "", "9" * 30)):
        inbox.put(WorkerOrder(number, 1, "recycle", subject, "me", datetime.now(UTC)))
    inbox.put(WorkerOrder(9, 1, "recycle", None, "me", datetime.now(UTC)))  # type: ignore[arg-type]
    inbox.put(LeaseLost())

    notes.read(1.0)

    assert [refused for _, _, refused in answers][:5] == 5 * [True]
    assert max(len(text) for _, text, _ in answers) < 200
    assert state.is_fenced

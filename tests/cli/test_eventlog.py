"""What a worker says in a terminal: the routine only when it is asked to."""

from __future__ import annotations

from unstuck.cli.eventlog import human_log, is_loud

Told = dict[str, tuple[dict[str, object], str]]

ROUTINE: Told = {
    "acquired": (
        {"worker": "w1", "jobs": 3, "workflow": "greet", "job": "j1"},
        "w1 took 3 at once, the first is greet j1",
    ),
    "beat": ({"held": 2, "lease": 30.0}, "the lease was renewed for 30 s; 2 in hand"),
}
NEWS: Told = {
    "cancellation_requested": (
        {"job": "j1", "kind": "cancel", "reason": "changed my mind"},
        "Cancellation requested for j1: changed my mind",
    ),
    "executor_ended": ({"executor": 1, "pid": 7, "status": "exit 0"}, "process 1 (pid 7) ended as asked"),
    "executor_died": ({"executor": 1, "pid": 7, "status": "SIGKILL"}, "process 1 (pid 7) died: SIGKILL"),
    "store.clock_leapt": (
        {"seconds": -3600.0, "ahead": 3600.0, "noticed": "host"},
        "the database's clock leapt by -3,600 s: our time goes on without it",
    ),
}


def said(*, verbose: bool) -> list[str]:
    lines: list[str] = []
    write = human_log(lines.append, colour=False, verbose=verbose)
    for name, (facts, _) in (ROUTINE | NEWS).items():
        write(name, dict(facts))
    return [line.split("  ", 1)[1] for line in lines]


def test_a_worker_tells_news_and_with_verbose_its_routine_too() -> None:
    assert said(verbose=False) == [text for _, text in NEWS.values()]
    assert said(verbose=True) == [text for _, text in (ROUTINE | NEWS).values()]


def test_only_what_went_wrong_is_loud() -> None:
    assert [name for name in ROUTINE | NEWS if is_loud(name)] == ["executor_died", "store.clock_leapt"]

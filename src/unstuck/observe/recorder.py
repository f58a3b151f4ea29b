"""Recorder: what happens in this process, counted as its rooms say it (`telemetry`), from its first moment on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from unstuck import telemetry
from unstuck.model.metrics import BY_NAME, METRICS, MOST_NAMES, Buckets, Measures, OwnNames, Value
from unstuck.version import __version__

#: What is counted by one, and by which of its facts.
_COUNTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "recovered": ("unstuck_recovered_total", ("state",)),
    "overdue": ("unstuck_overdue_total", ("state",)),
    "delivered": ("unstuck_deliveries_total", ("outcome",)),
    "delivery_failed": ("unstuck_deliveries_total", ("outcome",)),
    "duty_failed": ("unstuck_duties_failed_total", ("duty",)),
    "alert_opened": ("unstuck_alerts_opened_total", ("rule",)),
    "alert_rule_failed": ("unstuck_alert_rules_failed_total", ("rule",)),
    "tick_decided": ("unstuck_schedule_ticks_total", ("outcome",)),
    "store_trouble": ("unstuck_store_troubles_total", ("loop",)),
    "stuck": ("unstuck_stucks_total", ("workflow",)),
    "fenced": ("unstuck_fenced_total", ()),
    "lease_lost": ("unstuck_leases_lost_total", ()),
    "executor_killed": ("unstuck_processes_killed_total", ()),
    "import_failed": ("unstuck_import_failures_total", ()),
}
_ENDED = {"executor_died": "died", "executor_ended": "ended"}

Facts = Callable[[Any], dict[str, Any]]


class Recorder:
    """Called from every thread of the process. `of_worker`: whether this is one, which has more to tell."""

    def __init__(self, *, of_worker: bool) -> None:
        self._faces = {"process", "worker"} if of_worker else {"process"}
        self._ends: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._names: dict[str, OwnNames] = {}
        self._values: dict[str, dict[tuple[str, ...], Value]] = {}
        for metric in METRICS:
            if metric.face in self._faces and not metric.labels and metric.kind != "gauge":
                self._values[metric.name] = {(): _nothing(metric.name)}

    def start(self) -> None:
        """Hear everything from now on."""
        self._ends.append(telemetry.subscribe(self.hear))
        if "worker" in self._faces:
            self._ends.append(telemetry.watch_jobs(self.see))

    def close(self) -> None:
        while self._ends:
            self._ends.pop()()

    def hear(self, name: str, facts: dict[str, object]) -> None:
        if name in _COUNTED:
            counter, labels = _COUNTED[name]
            self._count(counter, *(str(facts.get(label)) for label in labels))
            if name == "recovered":
                self._observe("unstuck_recovery_seconds", float(str(facts.get("silent_for", 0.0))))
        elif name == "acquired":
            self._count("unstuck_claims_total", by=int(str(facts["jobs"])))
        elif name in _ENDED:
            self._count("unstuck_processes_ended_total", _ENDED[name])

    def see(self, ended: Sequence[Any], facts: Facts) -> None:
        """Jobs as they end, many at once."""
        for each in ended:
            told = facts(each)
            workflow = str(told["workflow"])
            self._count("unstuck_attempts_ended_total", workflow, str(told["state"]).lower())
            if told["error_type"] is not None:
                self._count("unstuck_attempts_failed_total", workflow)
            if told["duration_ms"] is not None:
                self._observe("unstuck_attempt_seconds", told["duration_ms"] / 1000, workflow)
            if told.get("request") is not None and told.get("obeyed_in") is not None:
                self._observe("unstuck_cancel_seconds", told["obeyed_in"], str(told["request"]))

    def measures(self) -> Measures:
        found = Measures()
        found.put("unstuck_build_info", 1, __version__)
        with self._lock:
            for name, values in self._values.items():
                for labels, value in values.items():
                    found.put(name, _copied(value), *labels)
        return found

    def _count(self, name: str, *labels: str, by: int = 1) -> None:
        with self._lock:
            values = self._values_of(name)
            if values is None:
                return
            own = self._own(name, labels)
            before = values.get(own, 0.0)
            assert not isinstance(before, Buckets)
            values[own] = before + by

    def _observe(self, name: str, seconds: float, *labels: str) -> None:
        with self._lock:
            values = self._values_of(name)
            if values is None:
                return
            buckets = values.setdefault(self._own(name, labels), _nothing(name))
            assert isinstance(buckets, Buckets)
            buckets.add(seconds, BY_NAME[name].bounds)

    def _values_of(self, name: str) -> dict[tuple[str, ...], Value] | None:
        return self._values.setdefault(name, {}) if BY_NAME[name].face in self._faces else None

    def _own(self, name: str, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Names come from applications: only so many of them get a sample of their own."""
        kinds = zip(BY_NAME[name].labels, labels, strict=True)
        return tuple(self._names.setdefault(kind, OwnNames(MOST_NAMES))(label) for kind, label in kinds)


def _nothing(name: str) -> Value:
    metric = BY_NAME[name]
    return Buckets([0] * (len(metric.bounds) + 1)) if metric.kind == "histogram" else 0.0


def _copied(value: Value) -> Value:
    return Buckets(list(value.counts), value.sum) if isinstance(value, Buckets) else value

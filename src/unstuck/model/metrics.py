"""The metrics: every one there is, with its labels and what it means, and what was measured of each.

docs/metrics.md is drawn from this table; alert rules and dashboard are checked against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from unstuck.model.series import BOUNDS_MS
from unstuck.records import dataclass

MetricKind = Literal["gauge", "counter", "histogram"]
#: Who tells it. "server": the server, from the database. "process": each worker and server of itself, since it began.
#: "worker": each worker of itself.
MetricFace = Literal["server", "process", "worker"]

#: The label of all names that have no sample of their own.
OTHER: Final = "other"
#: So many names (queue and workflow together), tenants, workers and jobs have one.
MOST_NAMES: Final = 100
MOST_TENANTS: Final = 100
MOST_WORKERS: Final = 200
MOST_WAITING: Final = 100
MOST_SERVERS: Final = 50

#: Upper bounds of buckets, in seconds: of what the database keeps, and of what a process measures.
KEPT_BOUNDS: Final = tuple(bound / 1000 for bound in BOUNDS_MS)
OWN_BOUNDS: Final = (0.005, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: MetricKind
    face: MetricFace
    labels: tuple[str, ...]
    meaning: str

    @property
    def bounds(self) -> tuple[float, ...]:
        return KEPT_BOUNDS if self.face == "server" else OWN_BOUNDS


def _server(name: str, kind: MetricKind, labels: str, meaning: str) -> Metric:
    return Metric(name, kind, "server", tuple(labels.split()), meaning)


def _process(name: str, kind: MetricKind, labels: str, meaning: str) -> Metric:
    return Metric(name, kind, "process", tuple(labels.split()), meaning)


def _worker(name: str, kind: MetricKind, labels: str, meaning: str) -> Metric:
    return Metric(name, kind, "worker", tuple(labels.split()), meaning)


METRICS: Final = (
    # The four that the documents name from which this project grew, as they name them.
    _server("jobs_queued_total", "gauge", "tenant_id", "Jobs that are QUEUED now"),
    _server("jobs_running_total", "gauge", "tenant_id", "Jobs that are RUNNING now"),
    _server(
        "jobs_stuck_duration_seconds", "gauge", "job_id",
        "How long a job that is due has been QUEUED; of the 100 that have waited longest",
    ),
    _server("worker_heartbeat_last_seconds", "gauge", "worker_id", "How long ago a worker last beat"),
    # --- jobs
    _server("unstuck_jobs", "gauge", "state queue workflow", "Jobs that have not ended, and dead ones"),
    _server("unstuck_jobs_scheduled", "gauge", "queue workflow", "Of the queued jobs, those that wait for a time"),
    _server("unstuck_jobs_cut", "gauge", "state", "1 where there may be more jobs than were counted, else 0"),
    _server(
        "unstuck_oldest_job_age_seconds", "gauge", "state queue",
        "How long the job that has waited longest has been due (queued), or at rest (pending, waiting, paused)",
    ),
    _server(
        "unstuck_jobs_past_bound", "gauge", "bound",
        "Jobs to which something should have happened by now at the latest; 0 when all is well",
    ),
    _server("unstuck_approvals_pending", "gauge", "", "Questions that wait for a person's decision"),
    _server("unstuck_jobs_enqueued_total", "counter", "queue workflow", "Jobs that were stored, however"),
    _server("unstuck_jobs_finished_total", "counter", "queue workflow outcome", "Runs that ended"),
    _server("unstuck_jobs_stuck_total", "counter", "queue workflow", "Runs that ended because they were stuck"),
    _server("unstuck_job_wait_seconds", "histogram", "queue workflow", "From due to claimed, of runs that ended"),
    _server("unstuck_job_run_seconds", "histogram", "queue workflow", "The last attempt of runs that ended"),
    _server(
        "unstuck_counted_until_timestamp_seconds", "gauge", "",
        "Up to when ends are in the counters and histograms of the server: one to two minutes ago",
    ),
    # --- what somebody should look at
    _server("unstuck_notifications_open", "gauge", "", "Notifications that nobody has taken note of"),
    _server("unstuck_blacklist_entries", "gauge", "", "Workflows that are shut out now"),
    _server("unstuck_targets_blocked", "gauge", "", "Targets that a job blocks"),
    _server("unstuck_target_blocked_longest_seconds", "gauge", "", "How long the longest blocked one has been"),
    _server("unstuck_quarantined", "gauge", "duty", "Single things that could not be written and were set aside"),
    _server(
        "unstuck_dead_letters", "gauge", "reason",
        "Dead letters: jobs that never ran because their signature was refused, or ran out of tries",
    ),
    _server("unstuck_dead_letter_oldest_seconds", "gauge", "", "How long ago the oldest dead letter was made"),
    _server("unstuck_webhooks", "gauge", "state", "Webhooks, by their state"),
    _server(
        "unstuck_deliveries_waiting", "gauge", "",
        "Deliveries to webhooks that are not taken yet, those of paused and disabled ones too",
    ),
    _server("unstuck_delivery_oldest_seconds", "gauge", "", "How long the delivery that waits longest has waited"),
    _server(
        "unstuck_webhook_failures", "gauge", "webhook",
        "Tries in a row that a webhook did not take, by its number; of the 100 that have failed longest",
    ),
    _server("unstuck_webhooks_behind", "gauge", "", "Places of the feed that are not copied out for webhooks yet"),
    _server("unstuck_alerts_open", "gauge", "rule severity", "Alerts that are open and not muted"),
    _server("unstuck_alert_rules_failing", "gauge", "", "Alert rules that fail: what they look for may go unnoticed"),
    _server("unstuck_schedules", "gauge", "state", "Schedules there are"),
    _server("unstuck_schedules_silent", "gauge", "", "Schedules that nobody fires, or whose last ticks made no job"),
    _server("unstuck_inbox_entries", "gauge", "", "Targets and dependants that wait to be looked at"),
    # --- the engine
    _server("unstuck_workers", "gauge", "state", "Workers that live, or ended within the last hour"),
    _server(
        "unstuck_worker_last_heartbeat_timestamp_seconds", "gauge", "worker",
        "When a worker last beat, in Unix seconds by the database's clock",
    ),
    _server(
        "unstuck_remote_workers", "gauge", "server",
        "Live workers at a distance, by the server through which they last beat",
    ),
    _server(
        "unstuck_worker_last_poll_timestamp_seconds", "gauge", "worker",
        "When a worker at a distance last had an answer to its poll for cancels and orders, in Unix seconds",
    ),
    _server("unstuck_clock_leaps_total", "counter", "", "Leaps of the database's clock that were noticed and undone"),
    _server("unstuck_clock_ahead_seconds", "gauge", "", "How far our time is from that clock since"),
    _server("unstuck_metrics_read_seconds", "gauge", "", "How long it took to read what is told here"),
    _server("unstuck_metrics_read_timestamp_seconds", "gauge", "", "When it was read, by the database's clock"),
    # --- a process, of itself
    _process("unstuck_build_info", "gauge", "version", "Always 1"),
    _process("unstuck_recovered_total", "counter", "outcome", "Jobs that this process took from lost workers"),
    _process(
        "unstuck_recovery_seconds", "histogram", "",
        "From a lost worker's last beat to when this process moved its job on",
    ),
    _process("unstuck_overdue_total", "counter", "outcome", "Jobs that this process convicted by the backstop"),
    _process("unstuck_deliveries_total", "counter", "outcome", "Tries of webhooks here, by what came of them"),
    _process("unstuck_duties_failed_total", "counter", "duty", "Janitor's duties that failed here"),
    _process("unstuck_alerts_opened_total", "counter", "rule", "Alerts that this process opened"),
    _process("unstuck_alert_rules_failed_total", "counter", "rule", "Turns of alert rules that failed here"),
    _process("unstuck_schedule_ticks_total", "counter", "outcome", "Ticks of schedules, by what this process did"),
    _process("unstuck_store_troubles_total", "counter", "loop", "Trouble with the database that was worth a line"),
    # --- a worker, of itself
    _worker("unstuck_worker_ready", "gauge", "", "1 while it takes jobs, else 0"),
    _worker("unstuck_worker_held", "gauge", "", "Attempts that it holds"),
    _worker("unstuck_worker_slots", "gauge", "", "Jobs that it runs at once at most"),
    _worker("unstuck_claims_total", "counter", "", "Attempts that it claimed"),
    _worker(
        "unstuck_attempts_ended_total", "counter", "workflow outcome",
        "Attempts that it settled, by the state in which that left their jobs",
    ),
    _worker("unstuck_attempts_failed_total", "counter", "workflow", "Of those, the ones that ended with an error"),
    _worker("unstuck_attempt_seconds", "histogram", "workflow", "How long their handlers ran"),
    _worker(
        "unstuck_cancel_seconds", "histogram", "request",
        "From when a handler was told to stop to when its end was stored, by what it was asked",
    ),
    _worker("unstuck_stucks_total", "counter", "workflow", "Attempts that ignored their request for the whole grace"),
    _worker("unstuck_fenced_total", "counter", "", "Reports that were refused: the attempt was no longer its own"),
    _worker("unstuck_leases_lost_total", "counter", "", "How often it lost its lease and began anew"),
    _worker("unstuck_processes_ended_total", "counter", "how", "Executor processes that died, or ended as asked"),
    _worker("unstuck_processes_killed_total", "counter", "", "Executor processes that it killed"),
    _worker("unstuck_import_failures_total", "counter", "", "Times that the app could not be imported"),
)  # fmt: skip

BY_NAME: Final = {metric.name: metric for metric in METRICS}


@dataclass(slots=True)
class Buckets:
    """How many fell into each bucket (one more than there are bounds), and their sum in seconds."""

    counts: list[int]
    sum: float = 0.0

    def add(self, seconds: float, bounds: Sequence[float]) -> None:
        place = next((number for number, bound in enumerate(bounds) if seconds <= bound), len(bounds))
        self.counts[place] += 1
        self.sum += max(0.0, seconds)


Value = float | Buckets


class Measures:
    """What was measured: for each metric a value for each of its labels' values."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, ...], Value]] = {}

    def put(self, name: str, value: Value, *labels: str) -> None:
        metric = BY_NAME[name]
        if len(labels) != len(metric.labels):
            raise ValueError(f"{name} has the labels {metric.labels}, and not {labels}")
        self._found.setdefault(name, {})[labels] = value

    def fill(self, name: str, values: Iterable[str], value: float = 0.0) -> None:
        """A metric with one label: of these there is always a sample, so that an alert never waits for the first."""
        for label in values:
            self._found.setdefault(name, {}).setdefault((label,), value)

    def get(self, name: str, *labels: str) -> Value:
        return self._found[name][labels]

    def labels(self, name: str) -> frozenset[tuple[str, ...]]:
        return frozenset(self._found.get(name, {}))

    def update(self, other: Measures) -> None:
        self._found.update(other._found)

    def __iter__(self) -> Iterator[tuple[Metric, dict[tuple[str, ...], Value]]]:
        """In the order of the table; what was not measured is left out."""
        for metric in METRICS:
            if metric.name in self._found:
                yield metric, self._found[metric.name]


class OwnNames:
    """Who has a sample of its own: the first so many that come, for as long as this lives."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(name)
        return name

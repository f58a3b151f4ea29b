"""Draws docs/metrics.md from `unstuck.model.metrics`: `python docs/draw_metrics.py` after changing one."""

from __future__ import annotations

from pathlib import Path

from unstuck.model.metrics import KEPT_BOUNDS, METRICS, MOST_NAMES, MOST_TENANTS, MOST_WORKERS, OWN_BOUNDS, MetricFace

PAGE = Path(__file__).with_name("metrics.md")

HEAD = f"""\
# Metrics, alerts and a dashboard

The tables are drawn from `src/unstuck/model/metrics.py` by `docs/draw_metrics.py`; a test compares the two.

Metrics need `pip install 'unstuck[metrics]'` (the extra `server` brings it along). Without it `/metrics` says so, and
everything else works.

- `/metrics` of `unstuck server` tells the shared truth, read from the database, and what this server did itself. It
  asks for a key of the role reader; a tenant's key sees that tenant alone. As long as there are no keys, it answers
  this machine.
- `/metrics` of `unstuck worker APP --health-port 9100` tells what this worker did since it began, to this machine;
  with `--health-host` elsewhere, to a reader's key of the platform.

```yaml
# prometheus.yml
rule_files: [unstuck.rules.yml]            # deploy/prometheus/unstuck.rules.yml
scrape_configs:
  - job_name: unstuck
    authorization: {{credentials_file: /etc/prometheus/unstuck.key}}   # unstuck keys create prometheus --role reader
    static_configs:
      - targets: ["unstuck.example.com:8420"]
  - job_name: unstuck-workers
    static_configs:
      - targets: ["localhost:9100"]
```

`/healthz` says that the process lives, to everybody, and asks nothing else; a stuck job never fails it. `/readyz`
says whether it can serve: 200, else 503, as it does while it leaves. It answers this machine itself, and whoever
shows a key; a probe from elsewhere sends the header `Authorization: Bearer KEY`.

**A scrape costs little.** The server reads the database at most every five seconds, on one thread, whoever asks;
everybody else gets the same text. Each question is bounded: a million queued or running jobs are counted, 100,000
resting and dead ones, and `unstuck_jobs_cut` is 1 where there may be more.
{MOST_NAMES} queues and workflows, {MOST_TENANTS} tenants and {MOST_WORKERS} workers have samples of their own;
all others are summed up as `other`.

**Several servers tell the same.** Gauges and counters of the table *server* come from the database, so each server
has the same value: take `max`, not `sum`, over `instance`. They go on after a restart. Only `other` begins at 0 with
each server: which names are summed up in it may change then, and a counter must not leap. Ends are counted one to two
minutes after they happen; `unstuck_counted_until_timestamp_seconds` says up to when. Enqueued jobs are counted
a minute later, without a word from whoever enqueues them. What a process tells of itself begins at 0 with it, as
Prometheus expects: take `sum` of `rate`.

Why it is so: [decisions/0025](decisions/0025-metrics.md).
"""

FACES: dict[MetricFace, str] = {
    "server": "## Server: read from the database",
    "process": "## Every worker and server with a janitor, of itself",
    "worker": "## Every worker, of itself",
}

FOOT = f"""\
Buckets of `unstuck_job_wait_seconds` and `unstuck_job_run_seconds`: {", ".join(f"{b:g}" for b in KEPT_BOUNDS)} s.
Of what a process measures itself: {", ".join(f"{b:g}" for b in OWN_BOUNDS)} s.

`unstuck_jobs_past_bound` is 0 when all is well. `bound` says what should have happened, by the times that `unstuck
health --bounds` prints: `lost` (a job of a lost worker was not recovered), `limit` (a RUNNING job is past its time
limit, its grace and the backstop), `start`, `expire`, `wait` (a timer was not fired), `claim` (a job that no gate
keeps from running was not claimed although slots were free, at two readings). It is counted up to 1,000 each.

`unstuck_cancel_seconds` begins when the worker has heard of the request, which takes `cancel_poll` (2 s) at most.
`jobs_queued_total` and `jobs_running_total` are gauges although they end in `_total`: they are named so by the
documents that this project grew from. `unstuck_jobs` says the same in the usual words. Of each route the first jobs
are looked at to find those that have waited longest; where jobs wait on more than 1,000 routes, of the first 1,000.

## Alerts

[deploy/prometheus/unstuck.rules.yml](../deploy/prometheus/unstuck.rules.yml), with tests beside it. `make
test-all` checks both, and what a server exports, with Prometheus's own tool. What to do about each:

### UnstuckJobQueuedTooLong

A job has been due for more than five minutes. `unstuck why JOB` says what it waits for; `unstuck health` names the
oldest, and `jobs_stuck_duration_seconds` the hundred that have waited longest.

### UnstuckJobPastBound

Something that a worker does by itself within seconds has not happened. `unstuck health` says to which job and which
role of which worker fails; [trouble.md](trouble.md) says what to do. With `bound="claim"`: `unstuck why JOB`.

### UnstuckJobOverItsLimit

A RUNNING job is past its limit and nobody judges it: its supervisor does not, and no janitor's sweep does.
`unstuck health`, `unstuck workers`; then `unstuck workers kill PID`.

### UnstuckJobRestsTooLong

A job has been PENDING or PAUSED for a day: `unstuck jobs list --state PAUSED`, then `unstuck jobs resume`, `release`
or `cancel`.

### UnstuckTargetBlockedTooLong

`unstuck targets --blocked` names the job that blocks it: resume, resolve or skip it ([order.md](order.md)).

### UnstuckWorkerSilent

A worker has not beaten for 120 s and did not leave. Its jobs were recovered; look at its host. The alert ends when
one of its name lives, or an hour later.

### UnstuckNoWorker

Jobs wait and no worker is active: `unstuck workers`, then start one.

### UnstuckZombiesRepeatedly

Workers are lost again and again, with jobs in their hands: out of memory, hosts that go away, a database that cannot
be reached. `unstuck workers` and the workers' logs say which.

### UnstuckJobsStuck

Jobs did not answer a cancel or the end of their time within their grace. `unstuck jobs list --state STUCK`, `unstuck
stack JOB`, [ladder.md](ladder.md).

### UnstuckWorkflowBlacklisted

A workflow got stuck too often, or somebody shut it out: `unstuck blacklist list`, [guard.md](guard.md).

### UnstuckNotificationsOpen

`unstuck notifications`; take note of each with `unstuck notifications ack`.

### UnstuckQuarantine

Single things could not be written: `unstuck quarantine` says which, and with which error ([trouble.md](trouble.md)).

### UnstuckDeadLetters

Jobs never ran because their signature was refused, or ran out of tries: `unstuck dead-letters` says which and why,
`unstuck why JOB` what can be done ([dead-letters.md](dead-letters.md)). A letter is gone after a day.

### UnstuckAlertOpen

unstuck's own rules found something: `unstuck alerts` says what, since when, and what to type
([alerts.md](alerts.md)). Some of these alerts have a rule here too: mute one of them, or turn the other off.

### UnstuckAlertRuleFails

`unstuck alerts rules` says which, and why. What it looks for may go unnoticed meanwhile.

### UnstuckScheduleSilent

`unstuck schedules firings NAME` says why the last ticks made no job; where nobody fires, no worker and no server
lives, or `janitor/schedules` fails (`unstuck health`).

### UnstuckClockLeapt

Nobody was charged, delays and leases keep their distance; see to the time of the database's host.

### UnstuckCountingLate

No janitor has counted for a quarter of an hour: no worker and no server lives, or `janitor/series` fails (`unstuck
health`). Counters and histograms of the server stand still meanwhile.

## Dashboard

[deploy/grafana/unstuck.json](../deploy/grafana/unstuck.json): import it into Grafana and choose your Prometheus. It
is drawn by `docs/draw_dashboard.py`.
"""


def draw() -> str:
    parts = [HEAD]
    for face, title in FACES.items():
        parts.append(f"{title}\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |")
        for metric in METRICS:
            if metric.face == face:
                labels = ", ".join(f"`{label}`" for label in metric.labels)
                parts.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |")
        parts.append("")
    return "\n".join([*parts, FOOT])


if __name__ == "__main__":
    PAGE.write_text(draw())

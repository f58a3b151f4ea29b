"""Draws deploy/grafana/unstuck.json, a dashboard for what docs/metrics.md lists. `--check`: is it as drawn?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "deploy" / "grafana" / "unstuck.json"
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3

#: (title, unit, {legend: expression}), row by row. Gauges about shared state are told by every server alike: max.
PANELS: list[tuple[str, list[tuple[str, str, dict[str, str]]]]] = [
    (
        "Is all well?",
        [
            ("Jobs past their bound", "short", {"{{bound}}": "max by (bound) (unstuck_jobs_past_bound)"}),
            ("Oldest due job", "s", {"{{queue}}": 'max by (queue) (unstuck_oldest_job_age_seconds{state="queued"})'}),
            ("Workers", "short", {"{{state}}": "max by (state) (unstuck_workers)"}),
            (
                "Somebody should look",
                "short",
                {
                    "notifications": "max(unstuck_notifications_open)",
                    "blacklisted": "max(unstuck_blacklist_entries)",
                    "targets blocked": "max(unstuck_targets_blocked)",
                    "quarantined": "sum(max by (duty) (unstuck_quarantined))",
                    "dead letters": "sum(max by (reason) (unstuck_dead_letters))",
                    "approvals": "max(unstuck_approvals_pending)",
                },
            ),
            (
                "Longest at rest",
                "s",
                {
                    "{{state}}": 'max by (state) (unstuck_oldest_job_age_seconds{state!="queued"})',
                    "blocked target": "max(unstuck_target_blocked_longest_seconds)",
                    "dead letter": "max(unstuck_dead_letter_oldest_seconds)",
                },
            ),
            (
                "Jobs that have waited longest",
                "s",
                {"{{job_id}}": "topk(10, max by (job_id) (jobs_stuck_duration_seconds))"},
            ),
        ],
    ),
    (
        "Jobs",
        [
            (
                "Jobs by state",
                "short",
                {"{{state}}": "sum by (state) (max by (state, queue, workflow) (unstuck_jobs))"},
            ),
            (
                "Queued by workflow",
                "short",
                {
                    "{{workflow}}": "topk(20, sum by (workflow) (max by (queue, workflow) "
                    '(unstuck_jobs{state="queued"})))'
                },
            ),
            (
                "Queued and running by tenant",
                "short",
                {
                    "{{tenant_id}} queued": "topk(10, max by (tenant_id) (jobs_queued_total))",
                    "{{tenant_id}} running": "topk(10, max by (tenant_id) (jobs_running_total))",
                },
            ),
            (
                "Jobs enqueued, and runs that ended",
                "ops",
                {
                    "enqueued": "sum(max by (queue, workflow) (rate(unstuck_jobs_enqueued_total[5m])))",
                    "{{outcome}}": "sum by (outcome) (max by (queue, workflow, outcome) "
                    "(rate(unstuck_jobs_finished_total[5m])))",
                },
            ),
            (
                "Runs that did not complete, by workflow",
                "ops",
                {
                    "{{workflow}}": "topk(20, sum by (workflow) (max by (queue, workflow, outcome) "
                    '(rate(unstuck_jobs_finished_total{outcome!="completed"}[5m]))))'
                },
            ),
            (
                "Runs that were stuck",
                "short",
                {
                    "{{workflow}}": "sum by (workflow) (max by (queue, workflow) "
                    "(increase(unstuck_jobs_stuck_total[15m])))"
                },
            ),
        ],
    ),
    (
        "Times",
        [
            (
                f"{title}",
                "s",
                {
                    f"p{share * 100:.0f}": f"histogram_quantile({share}, sum by (le) (max by (le{labels}) "
                    f"(rate({metric}_bucket[5m]))))"
                    for share in (0.5, 0.95, 0.99)
                },
            )
            for title, metric, labels in (
                ("From due to claimed", "unstuck_job_wait_seconds", ", queue, workflow"),
                ("Last attempt", "unstuck_job_run_seconds", ", queue, workflow"),
                ("Handlers, as workers measure them", "unstuck_attempt_seconds", ", workflow, instance"),
                ("From told to stop to ended", "unstuck_cancel_seconds", ", request, instance"),
                ("From a lost worker's last beat to recovered", "unstuck_recovery_seconds", ", instance"),
            )
        ],
    ),
    (
        "Workers",
        [
            ("Since the last beat", "s", {"{{worker_id}}": "max by (worker_id) (worker_heartbeat_last_seconds)"}),
            (
                "Slots",
                "short",
                {
                    "held": "sum(unstuck_worker_held)",
                    "slots": "sum(unstuck_worker_slots)",
                    "ready": "sum(unstuck_worker_ready)",
                },
            ),
            ("Attempts claimed", "ops", {"{{instance}}": "rate(unstuck_claims_total[5m])"}),
            (
                "Attempts that ended",
                "ops",
                {"{{outcome}}": "sum by (outcome) (rate(unstuck_attempts_ended_total[5m]))"},
            ),
            (
                "Processes that ended",
                "short",
                {
                    "{{how}}": "sum by (how) (increase(unstuck_processes_ended_total[5m]))",
                    "killed": "sum(increase(unstuck_processes_killed_total[5m]))",
                },
            ),
            (
                "Recovered, convicted, fenced",
                "short",
                {
                    "recovered": "sum(increase(unstuck_recovered_total[5m]))",
                    "overdue": "sum(increase(unstuck_overdue_total[5m]))",
                    "fenced": "sum(increase(unstuck_fenced_total[5m]))",
                    "stuck": "sum(increase(unstuck_stucks_total[5m]))",
                },
            ),
        ],
    ),
    (
        "The engine",
        [
            ("Leaps of the database's clock", "short", {"leaps": "max(increase(unstuck_clock_leaps_total[15m]))"}),
            ("A reading of these metrics", "s", {"{{instance}}": "unstuck_metrics_read_seconds"}),
            (
                "Counting is behind by",
                "s",
                {
                    "behind": "max(unstuck_metrics_read_timestamp_seconds) "
                    "- max(unstuck_counted_until_timestamp_seconds)",
                },
            ),
        ],
    ),
]


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for row, found in PANELS:
        panels.append(_row(row, len(panels) + 1, top))
        top += 1
        for place, (title, unit, lines) in enumerate(found):
            line, column = divmod(place, _COLUMNS)
            at = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": top + line * _HEIGHT}
            panels.append(_panel(title, unit, lines, len(panels) + 1, at))
        top += -(-len(found) // _COLUMNS) * _HEIGHT
    return {
        "title": "unstuck",
        "uid": "unstuck",
        "tags": ["unstuck"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}],
        },
        "panels": panels,
    }


def _row(title: str, number: int, top: int) -> dict[str, Any]:
    at = {"h": 1, "w": 24, "x": 0, "y": top}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": at, "panels": []}


def _panel(title: str, unit: str, lines: dict[str, str], number: int, at: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    targets = [
        {"refId": chr(ord("A") + place), "datasource": source, "expr": expression, "legendFormat": legend}
        for place, (legend, expression) in enumerate(lines.items())
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": source,
        "gridPos": at,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets,
    }


def drawn() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if FILE.read_text() == drawn() else "run: python docs/draw_dashboard.py")
    FILE.write_text(drawn())

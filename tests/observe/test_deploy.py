"""Docs, alert rules and dashboard name metrics that exist; every alert has its place in the docs."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import yaml

from unstuck.model.metrics import BY_NAME, METRICS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RULES = ROOT / "deploy" / "prometheus" / "unstuck.rules.yml"
RULE_TESTS = ROOT / "deploy" / "prometheus" / "unstuck.rules.test.yml"
#: Words of PromQL that look like metrics.
_WORDS = {"histogram_quantile"}


def check_expression(expression: str) -> None:
    """Each metric is one of ours, selected by labels that it has, and grouped by labels that one of them has."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", bare))))
    known = {"le", "instance"}
    rest = re.sub(r"by \([^)]*\)|\[\w+\]", "", bare)
    found = [(name, labels) for name, labels in re.findall(r"\b([a-z]\w*)\b(?:\{([^}]*)\})?", rest) if "_" in name]
    found = [(name, labels) for name, labels in found if name not in _WORDS]
    assert found, f"{expression} names no metric"
    for name, labels in found:
        metric = BY_NAME.get(name) or BY_NAME.get(re.sub(r"_(bucket|sum|count)$", "", name))
        assert metric is not None, f"{expression} names {name}, which is none of ours"
        assert set(re.findall(r"(\w+)[!=]", labels)) <= set(metric.labels), expression
        known |= set(metric.labels)
        if metric.kind == "counter":
            assert re.search(r"(rate|increase)\(", expression), f"{expression}: {name} is a counter"
    assert grouped <= known, f"{expression} groups by {grouped - known}"


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_every_alert_names_metrics_of_ours_and_a_place_that_says_what_to_do() -> None:
    page = (DOCS / "metrics.md").read_text()
    for rule in rules():
        check_expression(rule["expr"])
        # The last: as the alert itself says.
        assert rule["labels"]["severity"] in ("info", "warning", "critical", "{{ $labels.severity }}")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["runbook"] == f"docs/metrics.md#{rule['alert'].lower()}"
        assert f"### {rule['alert']}\n" in page
    assert len(re.findall(r"^### Unstuck", page, re.MULTILINE)) == len(rules())


def test_every_alert_is_shown_by_a_test_of_promtool() -> None:
    tests = yaml.safe_load(RULE_TESTS.read_text())["tests"]
    fired = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one["exp_alerts"]}
    assert fired == {rule["alert"] for rule in rules()}


def test_every_panel_has_a_title_a_unit_and_expressions_over_metrics_of_ours() -> None:
    draw = runpy.run_path(str(DOCS / "draw_dashboard.py"))
    file = ROOT / "deploy" / "grafana" / "unstuck.json"
    assert file.read_text() == draw["drawn"](), "run: python docs/draw_dashboard.py"
    board = json.loads(file.read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert len({panel["title"] for panel in panels}) == len(panels) > 20
    for panel in panels:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in ("s", "short", "ops")
        assert panel["targets"]
        for target in panel["targets"]:
            check_expression(target["expr"])
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert label in target["expr"] or label == "instance"
    spots = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(spots) == len(set(spots))


def test_the_page_is_as_drawn_and_the_seeds_names_are_there() -> None:
    draw = runpy.run_path(str(DOCS / "draw_metrics.py"))["draw"]
    assert (DOCS / "metrics.md").read_text() == draw(), "run: python docs/draw_metrics.py"
    labels = {metric.name: metric.labels for metric in METRICS}
    assert labels["jobs_queued_total"] == labels["jobs_running_total"] == ("tenant_id",)
    assert labels["jobs_stuck_duration_seconds"] == ("job_id",)
    assert labels["worker_heartbeat_last_seconds"] == ("worker_id",)
    assert len(labels) == len(METRICS)

"""What Prometheus and its linter demand of the text, checked line by line: promtool's rules without promtool."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from unstuck.model.metrics import BY_NAME

#: Gauges that are called as if they were counters, by the documents that this project grew from.
NAMED_SO = {"jobs_queued_total", "jobs_running_total"}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
Labels = frozenset[tuple[str, str]]


def samples(text: str) -> dict[str, dict[Labels, float]]:
    """By sample's name and labels; fails on what is no good text."""
    assert text.endswith("\n")
    assert "\n\n" not in text
    found: dict[str, dict[Labels, float]] = defaultdict(dict)
    families = list(text_string_to_metric_families(text))
    names = [line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len(names) == len(set(names)), "a metric is told twice"
    for family in families:
        assert family.documentation, f"{family.name} has no help"
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            assert labels not in found[sample.name], f"{sample.name}{sample.labels} is told twice"
            assert not math.isnan(sample.value)
            found[sample.name][labels] = sample.value
        metric = BY_NAME.get(family.name) or BY_NAME[f"{family.name}_total"]
        assert family.type == metric.kind, family.name
        _check_name(metric.name, metric.kind)
        if metric.kind == "histogram":
            _check_histogram(metric.name, found)
        if metric.kind == "counter":
            assert all(value >= 0 for value in found[metric.name].values())
    return dict(found)


def _check_name(name: str, kind: str) -> None:
    """As `promtool check metrics` has it."""
    assert _NAME.fullmatch(name)
    assert name.endswith("_total") == (kind == "counter") or name in NAMED_SO, name
    assert not re.search(r"_(bucket|count|sum)$", name), name
    assert not re.search(r"(milliseconds|minutes|hours|_ms|_us)", name), name


def _check_histogram(name: str, found: Mapping[str, Mapping[Labels, float]]) -> None:
    series: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, value in found[f"{name}_bucket"].items():
        (bound,) = [text for label, text in labels if label == "le"]
        series[frozenset(pair for pair in labels if pair[0] != "le")].append((float(bound), value))
    assert set(series) == set(found[f"{name}_count"]) == set(found[f"{name}_sum"])
    for labels, buckets in series.items():
        buckets.sort()
        assert buckets[-1] == (math.inf, found[f"{name}_count"][labels])
        counts = [count for _, count in buckets]
        assert counts == sorted(counts), f"the buckets of {name} fall"


def value(found: Mapping[str, Mapping[Labels, float]], name: str, **labels: str) -> float:
    return found[name][frozenset(labels.items())]

"""Exposition: measures as text that Prometheus reads. The one file that knows prometheus-client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from unstuck.model.errors import InvalidInput
from unstuck.model.metrics import Buckets, Measures, Metric, Value

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

#: What the text is, as HTTP says it.
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text_of(measures: Measures) -> str:
    """InvalidInput without the library."""
    try:
        from prometheus_client import generate_latest
    except ImportError:
        raise InvalidInput("metrics need prometheus-client: pip install 'unstuck[metrics]'") from None
    return generate_latest(_Collected(measures)).decode()


class _Collected:
    """What the library takes for a registry."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures

    def collect(self) -> Iterator[Family]:
        for metric, samples in self._measures:
            yield _family(metric, samples.items())


def _family(metric: Metric, samples: Iterable[tuple[tuple[str, ...], Value]]) -> Family:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    kinds = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "histogram": HistogramMetricFamily}
    family: Any = kinds[metric.kind](metric.name, metric.meaning, labels=metric.labels)
    for labels, value in samples:
        if isinstance(value, Buckets):
            bounds = [*(f"{bound:g}" for bound in metric.bounds), "+Inf"]
            family.add_metric(labels, list(zip(bounds, accumulate(value.counts), strict=True)), value.sum)
        else:
            family.add_metric(labels, value)
    return family  # type: ignore[no-any-return]

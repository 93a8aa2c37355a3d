"""Metrics of the exchanges, in the format of Prometheus. Needs the extra `metrics`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, Final

from bespeak.runtime.exchange import Exchange

_logger = logging.getLogger(__name__)

SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of the folder in which several workers add up their numbers; read by prometheus_client."""

_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_NO_ENDPOINT: Final = "-"
"""Label of a call that reached no endpoint: its method and path are the caller's own, and there is no end of them."""

_SYNTHESIS: Final = "(synthesis)"
"""Label of the paths of syntheses: agents choose them, so their number has no bound."""


def make_metrics() -> Metrics | None:
    """Create the metrics of this process; None, with a line in the log, if the extra is not installed."""
    try:
        return Metrics()
    except ImportError:
        _logger.warning("there are no /metrics without the extra: pip install 'bespeak[metrics]'")
        return None


class Metrics:
    """Counts the exchanges of one process. It is a subscriber of the dispatcher."""

    def __init__(self) -> None:
        import prometheus_client as client  # noqa: PLC0415 - optional

        self._client = client
        self._registry = client.CollectorRegistry()
        labels = ("face", "method", "path")
        self._answers = client.Counter(
            "bespeak_requests", "Answered requests.", (*labels, "status"), registry=self._registry
        )
        self._seconds = client.Histogram(
            "bespeak_request_seconds", "Time to answer.", labels, buckets=_BUCKETS, registry=self._registry
        )
        self._known: dict[tuple[str, ...], tuple[Any, Any]] = {}
        self.shared = SHARED_FOLDER in os.environ
        """True if several processes add up their numbers."""
        if not self.shared:
            client.ProcessCollector(registry=self._registry)

    def __call__(self, exchange: Exchange) -> None:
        """Count one exchange."""
        route = exchange.call.route
        method, path = (_NO_ENDPOINT, _NO_ENDPOINT) if route is None else (route.method, route.endpoint.path)
        if route is not None and route.synthesis_id is not None:
            path = _SYNTHESIS
        key = (exchange.face, method, path, str(exchange.response.status))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._answers.labels(*key), self._seconds.labels(*key[:3]))
        found[0].inc()
        found[1].observe(exchange.seconds or 0.0)

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Publish a number of this process that is read when it is asked for; left out if processes add up theirs."""
        if not self.shared:
            self._client.Gauge(name, meaning, registry=self._registry).set_function(value)

    def write(self) -> tuple[bytes, str]:
        """Return the metrics as text, and its media type."""
        registry = self._registry
        if self.shared:
            from prometheus_client import multiprocess  # noqa: PLC0415 - only for several workers

            registry = self._client.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the library has no hint
        return self._client.generate_latest(registry), self._client.CONTENT_TYPE_LATEST

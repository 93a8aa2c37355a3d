"""The extension: observing, routing, repeating and pricing calls."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.monitors.health import CallStatistics, CostHistory, Presence
from bespeak.extensions.monitors.methods import check, monitor, quote, retry
from bespeak.extensions.monitors.monitors import Monitors
from bespeak.extensions.monitors.retries import RETRY, Retries
from bespeak.extensions.monitors.routing import route
from bespeak.extensions.monitors.store import ACTIVE, KEPT_CALL, MONITOR
from bespeak.runtime.composition.step import ComposingMethod
from bespeak.runtime.extension import Cancelling, Extension, Opening, RecordKind


def _open(opening: Opening) -> None:
    enabled, store, server = opening.enabled, opening.store, opening.server
    if enabled & {"QUOTE", "REPORT", "ROUTE"}:
        costs = CostHistory()
        opening.provide("costs", costs)
        opening.observe(costs)
    if enabled & {"MONITOR", "ROUTE"}:
        statistics = CallStatistics()
        opening.provide("statistics", statistics)
        opening.observe(statistics)
    if store is None:
        return
    retries = Retries(store, opening.dispatcher, enabled=RETRY in enabled)
    opening.provide("retries", retries)
    if RETRY in enabled:
        opening.dispatcher.keep_calls(retries)
    monitors = Monitors(opening.dispatcher, store, tuple(kind for kind in server.cancelling if kind != MONITOR))
    opening.provide("monitors", monitors)
    if "CHECK" in enabled and not store.sole:
        presence = Presence(store, server.registrar.service.identity.server_id)
        opening.on_run(presence.start)
        opening.on_stop(presence.stop)
    opening.on_run(retries.start)
    opening.on_close(retries.close)
    if "MONITOR" in enabled:
        opening.on_run(monitors.start)
    opening.on_stop(monitors.close)


monitors: Final = Extension(
    name="monitors",
    methods={"QUOTE": quote, "MONITOR": monitor, "ROUTE": ComposingMethod(route), "RETRY": retry, "CHECK": check},
    kinds={
        # A monitor of a monitor could be one of itself.
        MONITOR: RecordKind(due=lambda server: server.part("monitors").carry, cancelling=Cancelling((ACTIVE,))),
        KEPT_CALL: RecordKind(due=lambda server: server.part("retries").carry),
    },
    open=_open,
)

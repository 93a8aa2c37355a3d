"""Numbers about exchanges: what is counted, and what a caller cannot inflate."""

from __future__ import annotations

import logging
import sys

import pytest
from tests.runtime.negotiation.negotiating import lodgings, negotiating
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Metrics, make_metrics

FIND = make_endpoint("FIND", "/rooms/{room_id}", echo, properties={"room_id": {"type": "string"}})


def counted(*targets: str) -> str:
    bench = build(FIND)
    metrics = Metrics()
    dispatcher = Dispatcher(bench.dispatcher.server, subscribers=(metrics,))
    bench.dispatcher = dispatcher
    for target in targets:
        method, path = target.split(" ")
        bench.send(method, path, agent_id=AGENT)
    metrics.gauge("bespeak_agtp_connections", "Open connections.", lambda: 3.0)
    return metrics.write()[0].decode()


def test_answers_are_counted_by_endpoint_and_status() -> None:
    text = counted("FIND /rooms/1", "FIND /rooms/2")
    assert 'bespeak_requests_total{face="agtp",method="FIND",path="/rooms/{room_id}",status="200"} 2.0' in text
    assert 'bespeak_request_seconds_count{face="agtp",method="FIND",path="/rooms/{room_id}"} 2.0' in text
    assert "bespeak_agtp_connections 3.0" in text
    assert "process_open_fds" in text


def test_names_that_callers_invent_do_not_become_labels() -> None:
    text = counted(*(f"FIND /secret-{number}" for number in range(50)), "XYZZY /rooms/1")
    assert "secret" not in text
    assert "XYZZY" not in text
    assert 'bespeak_requests_total{face="agtp",method="-",path="-",status="404"} 50.0' in text


@pytest.mark.anyio
async def test_paths_that_agents_propose_do_not_become_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    async with negotiating() as bench:
        monkeypatch.setattr(bench.bench.dispatcher, "_subscribers", (metrics,))
        await bench.send("PROPOSE", "/", lodgings())
        assert (await bench.send("FIND", "/lodgings", {"town": "Rome"})).status == 200
        text = metrics.write()[0].decode()
        assert "lodgings" not in text
        assert 'method="FIND",path="(synthesis)",status="200"' in text


def test_without_the_extra_the_log_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with caplog.at_level(logging.WARNING):
        assert make_metrics() is None
    assert "pip install 'bespeak[metrics]'" in caplog.text

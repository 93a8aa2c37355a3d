"""Progress that a handler reports."""

from __future__ import annotations

from bespeak.protocol.exchange.messages import REPORT, Connection, Context, Request
from bespeak.protocol.exchange.principal import ANONYMOUS

CONTEXT = Context(Request("QUERY", "/", "", {}, b"", Connection()), ANONYMOUS, "QUERY", "/", {})


def test_report_of_progress_reaches_its_listener_if_there_is_one() -> None:
    heard: list[tuple[object, ...]] = []
    token = REPORT.set(lambda *news: heard.append(news))
    CONTEXT.progress(1, 2, "half")
    CONTEXT.progress(2)
    REPORT.reset(token)
    assert heard == [(1, 2, "half"), (2, None, None)]
    assert CONTEXT.progress(1) is None  # type: ignore[func-returns-value] # that is what is tested

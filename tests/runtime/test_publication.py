"""Publication: every endpoint except internal ones, which still answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import AGENT, Bench, build, echo, make_endpoint

from bespeak.protocol.exchange.headers import MEDIA_AGIS

OPEN = make_endpoint("FIND", "/rooms", echo, output={"type": "object"}, capability="discovery")
HIDDEN = replace(make_endpoint("AUDIT", "/ledger", echo), internal=True)
BESIDE = replace(make_endpoint("RECONCILE", "/rooms", echo), internal=True)


@pytest.fixture
def bench() -> Bench:
    return build(OPEN, HIDDEN, BESIDE)


def test_an_internal_endpoint_answers(bench: Bench) -> None:
    assert bench.send("AUDIT", "/ledger").status == 200


@pytest.mark.parametrize(
    ("method", "target", "body", "headers"),
    [
        ("DISCOVER", "/", None, {}),
        ("DISCOVER", "/", None, {"accept": MEDIA_AGIS}),
        ("DISCOVER", "/methods", None, {}),
        ("DISCOVER", "/", {"criteria": "audit the ledger, reconcile rooms"}, {"agent_id": AGENT}),
        ("DESCRIBE", "/", None, {}),
        ("BOOK", "/rooms", None, {}),
        ("BOOK", "/ledger", None, {}),
    ],
)
def test_no_document_and_no_refusal_names_an_internal_endpoint(
    bench: Bench, method: str, target: str, body: Any, headers: dict[str, str]
) -> None:
    reply = bench.send(method, target, body, **headers)
    text = reply.response.body.decode()
    # The path that was asked for may be repeated; that something answers there may not.
    assert "AUDIT" not in text
    assert "RECONCILE" not in text
    assert "ledger" not in text.replace("/ledger'", "").replace('"/ledger"', "")


def test_a_path_with_only_internal_endpoints_is_not_published(bench: Bench) -> None:
    assert bench.send("BOOK", "/ledger").status == 404
    assert bench.send("BOOK", "/rooms").error["allowed_methods_for_path"] == ["FIND"]

"""The producers' rules on what was fetched."""

from __future__ import annotations

import json

from tests.documents.ai.test_document import FLIGHTS

from bespeak.agent.discovery.producer_check import check_producer
from bespeak.agent.discovery.web_document import DISCOVERY, OPENAPI, Fetched

URL = "https://flights.test/.well-known/ai"


def fetched(body: bytes, what: str = DISCOVERY.what) -> Fetched:
    return Fetched(what=what, url=URL, final_url=URL, status=200, body=body)


def test_findings_that_agents_tolerate_are_reported_to_the_author() -> None:
    body = json.dumps({**FLIGHTS, "aiendpoint": "2.0", "extra": 1}).encode()
    found = check_producer(fetched(body))
    assert {"D170"} <= {finding.rule for finding in found}
    assert found[0].location is not None
    assert found[0].location.file == URL


def test_a_good_document_has_no_errors() -> None:
    assert [each for each in check_producer(fetched(json.dumps(FLIGHTS).encode())) if each.severity == "error"] == []


def test_text_that_is_not_utf8_is_reported() -> None:
    assert [each.rule for each in check_producer(fetched(b"\xff"))] == ["D101"]


def test_other_kinds_have_no_rules_here() -> None:
    assert check_producer(fetched(b"{}", OPENAPI.what)) == []

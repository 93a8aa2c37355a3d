"""What asking for a document gave."""

from __future__ import annotations

import pytest

from bespeak.agent.discovery.web_document import AGIS, DISCOVERY, OPENAPI, ROBOTS, FaultKind, Fetched, FetchFault


@pytest.mark.parametrize(
    ("kind", "rule"),
    [("private", "W102"), ("downgrade", "W102"), ("timeout", "W101"), ("robots", "W104"), ("size", "W103")],
)
def test_a_fault_is_reported_under_the_rule_of_its_step(kind: FaultKind, rule: str) -> None:
    assert FetchFault(kind, "x", "https://a.example/").rule.id == rule


def test_the_media_type_has_no_parameters() -> None:
    headers = {"content-type": " Application/JSON ; charset=utf-8"}
    assert Fetched(what="x", url="u", final_url="u", headers=headers).media_type == "application/json"


@pytest.mark.parametrize(("status", "expected"), [(404, True), (410, True), (403, False), (None, False)])
def test_a_document_that_is_not_there_is_known(status: int | None, expected: bool) -> None:
    assert Fetched(what="x", url="u", final_url="u", status=status).is_missing is expected


def test_each_kind_takes_its_own_types() -> None:
    assert DISCOVERY.takes("application/json")
    assert not DISCOVERY.takes("application/yaml")
    assert AGIS.takes("application/agis")
    assert OPENAPI.takes("text/yaml")
    assert ROBOTS.takes("text/html")


def test_each_kind_has_its_bound() -> None:
    assert (DISCOVERY.most, AGIS.most, OPENAPI.most) == (256_000, 4_000_000, 40_000_000)

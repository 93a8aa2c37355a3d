"""Kinds of documents."""

from __future__ import annotations

from bespeak.agent.discovery.web_document import AGIS, DISCOVERY, OPENAPI, ROBOTS


def test_each_kind_takes_its_own_types() -> None:
    assert DISCOVERY.takes("application/json")
    assert not DISCOVERY.takes("application/yaml")
    assert AGIS.takes("application/agis")
    assert OPENAPI.takes("text/yaml")
    assert ROBOTS.takes("text/html")


def test_each_kind_has_its_bound() -> None:
    assert (DISCOVERY.most, AGIS.most, OPENAPI.most) == (256_000, 4_000_000, 40_000_000)

"""Versions: which compare, which a provider serves, and which may follow."""

from __future__ import annotations

import pytest

from bespeak.contract.ontology.ontology import compare_versions, parse_version, succession_fault


@pytest.mark.parametrize(
    ("provided", "requested", "result"),
    [
        *(("2.1", "2.1", "compatible"), ("2.1", "2.0", "compatible"), ("2.10", "2.9", "compatible")),
        *(("2.1.0", "2.1.7", "compatible"), ("v2.1", "2", "compatible"), (2.1, "2.1", "compatible")),
        (3, "3.0", "compatible"),
        *(("2.0", "2.1", "older"), ("1.9", "2.0", "other_major"), ("3.0", "2.9", "other_major")),
        *(("2026-03-01", "2026-02-28", "compatible"), ("2026-02-28", "2026-03-01", "older")),
        *(("2025-12-31", "2026-01-01", "other_major"), ("2026-03-01", "2026.3", "incomparable")),
        *(("draft-b", "draft-a", "incomparable"), ("draft-a", "draft-a", "compatible")),
        ("1.0-rc1", "1.0", "incomparable"),
    ],
)  # fmt: skip
@pytest.mark.requirement("IOA-5.3-4")
def test_provider_serves_the_same_major_and_no_higher_minor(provided: str, requested: str, result: str) -> None:
    assert compare_versions(provided, requested) == result


@pytest.mark.parametrize(
    "text", ["", "latest", "1.", ".1", "1..2", "1.2.3.4.5", "9" * 10, "²", "1e3", float("nan"), True]
)
def test_text_without_an_order_is_not_a_version(text: str | float) -> None:
    assert parse_version(text) is None


def test_trailing_zeros_do_not_make_another_version() -> None:
    assert parse_version("1") == parse_version("1.0") == parse_version("v1.0.0")


@pytest.mark.parametrize(
    ("version", "latest", "says"),
    [
        ("2.0", "2.1", "version '2.0' is older than '2.1'; register a newer version"),
        ("draft", "2.1", "version 'draft' does not compare with '2.1'; use numbers with points, or dates"),
        ("2026-01-01", "2.1", "version '2026-01-01' does not compare with '2.1'; use numbers with points, or dates"),
    ],
)
@pytest.mark.requirement("IOA-5.3-3")
def test_downgrade_and_unknown_order_are_refused(version: str, latest: str, says: str) -> None:
    assert succession_fault(version, latest) == says


def test_newer_version_may_follow() -> None:
    assert succession_fault("2.1.1", "2.1") is None
    assert succession_fault("3.0", "2.9") is None

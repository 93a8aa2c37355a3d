"""Catalog versions and the choice of a common one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.catalog.catalog import Version, common_version, parse_version

numbers = st.integers(0, 999_999_999)


@given(numbers, numbers, numbers)
def test_version_is_parsed_as_written(major: int, minor: int, patch: int) -> None:
    assert parse_version(f"{major}.{minor}.{patch}") == Version(major, minor, patch)


@given(st.text(max_size=40))
def test_any_text_is_a_version_or_none(text: str) -> None:
    version = parse_version(text)
    assert version is None or text.startswith(f"{version.major}.{version.minor}.{version.patch}")


@pytest.mark.parametrize(
    "text", ["", "1", "1.0", "1.0.0.0", "01.0.0", "v1.0.0", "1.0.0\n", "1.0.-1", "١.0.0", "1.0." + "9" * 50]
)
def test_invalid_version_is_none(text: str) -> None:
    assert parse_version(text) is None


def test_versions_compare_by_number_not_by_text() -> None:
    ten, nine = parse_version("1.10.0"), parse_version("1.9.0")
    assert ten is not None
    assert nine is not None
    assert ten > nine


@pytest.mark.requirement("API-4.6-2")
def test_preferred_version_wins_if_both_support_it() -> None:
    assert common_version("1.0.0", ["1.0.0", "1.1.0"], ["1.1.0", "1.0.0"]) == "1.0.0"


@pytest.mark.requirement("API-4.6-3")
def test_highest_common_version_is_used_otherwise() -> None:
    assert common_version("2.0.0", ["1.9.0", "1.10.0", "2.0.0"], ["1.9.0", "1.10.0"]) == "1.10.0"


def test_without_overlap_there_is_no_version() -> None:
    assert common_version("2.0.0", ["2.0.0"], ["1.0.0"]) is None

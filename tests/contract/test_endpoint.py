"""Deprecation of an endpoint, in the manifest and in the warning."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.contract.endpoint import Deprecation


@pytest.mark.requirement("API-6.4-3")
@rows(
    "fields, warning, block",
    ({}, "deprecated", {}),
    ({"removed_in": "3.0.0"}, "deprecated; removed_in=3.0.0", {"removed_in": "3.0.0"}),
    ({"successor_method": "RESERVE"}, "deprecated; successor=RESERVE", {"successor": {"method": "RESERVE"}}),
    ({"successor_path": "/rooms"}, "deprecated; successor=/rooms", {"successor": {"path": "/rooms"}}),
    (
        {"successor_method": "RESERVE", "successor_path": "/rooms", "removed_in": "3.0.0"},
        "deprecated; successor=RESERVE /rooms; removed_in=3.0.0",
        {"successor": {"method": "RESERVE", "path": "/rooms"}, "removed_in": "3.0.0"},
    ),
)
def test_only_what_is_declared_is_written(fields: dict[str, Any], warning: str, block: dict[str, Any]) -> None:
    deprecation = Deprecation(deprecated_in="2.1.0", **fields)
    assert deprecation.warning() == warning
    assert deprecation.to_json() == {"deprecated_in": "2.1.0", **block}

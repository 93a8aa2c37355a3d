"""Optional dependencies: a missing one is named with its extra."""

from __future__ import annotations

import pytest

from bespeak.app.server.http_face import extra_needed
from bespeak.errors import ConfigError


def test_a_missing_package_is_named_with_the_extra() -> None:
    advice = r"A2A needs the official SDK: pip install 'bespeak\[a2a\]'"
    with pytest.raises(ConfigError, match=advice), extra_needed("A2A", "a2a", "a2a", "google"):
        raise ModuleNotFoundError("No module named 'google'", name="google.protobuf")


def test_any_other_missing_package_is_a_fault_of_ours() -> None:
    with pytest.raises(ModuleNotFoundError), extra_needed("A2A", "a2a", "a2a"):
        raise ModuleNotFoundError("No module named 'other'", name="other")

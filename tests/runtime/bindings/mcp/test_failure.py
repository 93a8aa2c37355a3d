"""Every kind of failure has a declared error."""

from __future__ import annotations

from typing import get_args

from bespeak.contract.handler import UPSTREAM_ERRORS
from bespeak.runtime.bindings.mcp.launch import FailureKind
from bespeak.runtime.bindings.mcp.tool import _ERRORS


def test_every_failure_is_an_error_that_external_services_declare() -> None:
    assert set(_ERRORS) == set(get_args(FailureKind))
    assert {name for name, _ in _ERRORS.values()} == set(UPSTREAM_ERRORS)

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bespeak.checks.lint.passes import RULES
from bespeak.checks.lint.registration import check_endpoint, check_service
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.policy import Policies


def test_an_endpoint_without_fault_has_no_findings(room: Endpoint, catalog: Catalog) -> None:
    assert check_endpoint(room, catalog, Policies()) == []


@pytest.mark.requirement("API-13.2-7", "API-13.2-8")
def test_all_faults_are_reported_together(room: Endpoint, catalog: Catalog) -> None:
    broken = replace(room, method="bok", path="/room/", description="", errors=(DeclaredError("a b"),))
    findings = check_endpoint(broken, catalog, Policies())
    assert [finding.rule for finding in findings] == ["M201", "P301", "S401", "J605"]
    assert all("bok /room/: " in finding.message for finding in findings)
    assert all(finding.location == room.location for finding in findings)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_no_text_in_a_contract_makes_a_rule_raise(
    room: Endpoint, catalog: Catalog, method: str, path: str, other: str
) -> None:
    spoilt = replace(
        room,
        method=method,
        path="/" + path,
        required_scopes=(other,),
        errors=(DeclaredError(other),),
        semantic=replace(room.semantic, capability=other, impact=other),
    )
    for finding in check_endpoint(spoilt, catalog, Policies()):
        assert finding.rule in RULES
    check_service([spoilt, spoilt])

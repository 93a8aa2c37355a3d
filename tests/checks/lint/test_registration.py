from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.lint.conftest import ROOM
from tests.compositions import compose, recipe, step
from tests.service import echo, make_endpoint

from bespeak.checks.lint.registration import (
    check_compositions,
    check_endpoint,
    check_endpoint_encoding,
    check_service,
    check_service_encoding,
)
from bespeak.checks.lint.rule_index import RULES
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.service import DataClass, DataManifest, ServerIdentity, Service
from bespeak.text.source.tree import Location


@pytest.mark.requirement("API-13.2-7", "API-13.2-8")
def test_endpoint_without_fault_has_no_findings_and_all_faults_are_reported_together(
    room: Endpoint, catalog: Catalog
) -> None:
    assert check_endpoint(room, catalog, Policies()) == []
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


READ = make_endpoint("FETCH", "/n", echo)


def check(*recipes: Recipe, depth: int = 10) -> dict[str, list[str]]:
    composed = [compose("FIND", f"/{one.name}", one.name) for one in recipes]
    by_name = {one.name: one for one in recipes}
    found = check_compositions(composed, by_name, {READ.key: READ}, Policies(max_synthesis_depth=depth))
    return {str(endpoint): [one.message for one in findings] for endpoint, _, findings in found}


def test_composition_with_a_missing_step_or_that_calls_itself_is_reported() -> None:
    composed, recipes = [compose("FIND", "/a", "a")], {"a": recipe(step("FETCH /m"))}
    [(_, called, [finding])] = check_compositions(composed, recipes, {READ.key: READ}, Policies())
    assert (called, finding.rule, finding.help) == (None, "H740", "Did you mean FETCH /n?")
    found = check(recipe(step("FIND /a"), name="a"))
    assert found == {"FIND /a": ["FIND /a: its recipe 'a' calls it again"]}


def test_a_cycle_of_several_is_reported_for_each_and_for_those_that_lead_to_it() -> None:
    found = check(
        recipe(step("FIND /b"), name="a"),
        recipe(step("FETCH /n"), step("FIND /a"), name="b"),
        recipe(step("FIND /a"), name="c"),
        recipe(step("FETCH /n"), name="d"),
    )
    assert found["FIND /d"] == []
    assert found["FIND /a"] == ["FIND /a: its recipe 'a' calls it again by way of FIND /b"]
    assert found["FIND /b"] == ["FIND /b: its recipe 'b' calls it again by way of FIND /a"]
    assert found["FIND /c"] == ["FIND /c: step 1 of its recipe 'c' calls 'FIND /a', which this server does not serve"]


def test_steps_of_all_levels_are_counted() -> None:
    three = recipe(*(step("FETCH /n") for _ in range(3)), name="three")
    nine = recipe(*(step("FIND /three") for _ in range(3)), name="nine")
    assert check(three, nine, depth=9) == {"FIND /three": [], "FIND /nine": []}
    [message] = check(three, nine, depth=8)["FIND /nine"]
    assert message == "FIND /nine: its recipe 'nine' makes 9 calls, and 8 are allowed"


@pytest.mark.parametrize("depth", [1, 40])
def test_recipes_that_double_at_each_level_end_quickly(depth: int) -> None:
    recipes = [recipe(step("FETCH /n"), name="r0")]
    recipes += [recipe(*(step(f"FIND /r{n}") for _ in range(2)), name=f"r{n + 1}") for n in range(depth)]
    assert len(check(*recipes)) == depth + 1


HALF, BLOCK = "half \ud83d", "/endpoint/semantic"
IDENTITY = ServerIdentity(server_id="rooms.example", operator="Acme", contact="ops@rooms.example")
SERVICE = Service(identity=IDENTITY, endpoints=(ROOM,))
HALF_CLASS = DataManifest(available_data=(DataClass(name=HALF),))


@rows(
    "changed, place",
    ({"description": HALF}, "/endpoint/description"),
    ({"semantic": replace(ROOM.semantic, outcome=HALF)}, "/endpoint/semantic/outcome"),
    ({"semantic": replace(ROOM.semantic, parameter_hints={"a/b": HALF})}, f"{BLOCK}/parameter_hints/a~1b"),
    ({"semantic": replace(ROOM.semantic, state_transition={HALF: "x"})}, f"{BLOCK}/state_transition"),
    ({"errors": (DeclaredError("room_taken", HALF),)}, "/endpoint/errors/0/description"),
)
def test_half_a_surrogate_pair_in_an_endpoint_is_an_error_at_its_place(changed: Any, place: str) -> None:
    [finding] = check_endpoint_encoding(replace(ROOM, **changed))
    assert (finding.severity, finding.pointer) == ("error", place)
    assert "half a surrogate pair" in finding.message
    assert finding.message.isprintable()


@rows(
    "changed, place",
    ({"identity": replace(IDENTITY, operator=HALF)}, "/identity/operator"),
    ({"data_manifest": HALF_CLASS}, "/data_manifest/available_data/0/name"),
)
def test_half_a_surrogate_pair_in_a_service_is_an_error_at_its_place(changed: Any, place: str) -> None:
    [finding] = check_service_encoding(replace(SERVICE, **changed))
    assert (finding.severity, finding.pointer) == ("error", place)


def test_names_of_files_and_whole_characters_are_allowed() -> None:
    whole = replace(ROOM, description="\U0001f600", location=Location("\udcff.toml", 1))
    assert list(check_endpoint_encoding(whole)) == []
    assert list(check_service_encoding(SERVICE)) == []

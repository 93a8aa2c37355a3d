"""A folder made for the reference implementation loads unchanged, and settings without effect are reported."""

from __future__ import annotations

from pathlib import Path

from bespeak.contract.endpoint import Deprecation
from bespeak.contract.handler import Composition, ExternalService, RegisteredFunction
from bespeak.contract.policy import Redirect
from bespeak.contract.recipe import constant
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.text.diagnostics.diagnostic import has_errors

DEPLOYMENT, FINDINGS = read_deployment(Path(__file__).parent / "reference_deployment")


def test_it_loads_without_an_error() -> None:
    assert not has_errors(FINDINGS), [str(finding) for finding in FINDINGS]
    assert [str(endpoint) for endpoint in DEPLOYMENT.endpoints] == [
        "ANALYZE /subjects/{subject}",
        "FETCH /records/{record_id}",
        "LIST /branches",
        "RESERVE /volumes",
    ]


def test_the_server_and_its_policies_are_read() -> None:
    service = DEPLOYMENT.service()
    assert (service.identity.server_id, service.identity.domain) == ("library.example", "agtp.library.example")
    assert (service.agent_disclosure, service.policies.max_synthesis_depth) == ("authenticated", 6)
    methods = DEPLOYMENT.policies.methods
    assert (methods.disallow, methods.legacy) == (("TRANSFER",), ("GET", "DELETE"))
    assert methods.redirects == (
        Redirect(from_method="BOOK", from_path="/volumes", to_method="RESERVE", to_path="/volumes"),
        Redirect(from_method="DELETE", to_method="REMOVE"),
    )
    assert (service.apis[0]["path"], service.hosted_protocols[0]["protocol"]) == ("/shelves", "openapi")


def test_the_three_handler_kinds_are_read() -> None:
    composition, external, old, function = (endpoint.handler for endpoint in DEPLOYMENT.endpoints)
    assert composition == Composition(recipe="digest-of-a-subject")
    assert old == RegisteredFunction(function="library.desk.branches")
    assert function == RegisteredFunction(function="library.desk.reserve")
    assert external == ExternalService(
        url="https://union.library.example/records",
        method="GET",
        headers={"Accept": "application/json", "Authorization": "Bearer ${UNION_TOKEN}"},
        input_transform={"record_id": "recordId"},
        output_transform={"title": "titleProper"},
        error_map={"404": "record_unknown"},
        timeout_seconds=10.0,
    )


def test_deprecation_scopes_and_errors_are_read() -> None:
    fetch, reserve = DEPLOYMENT.endpoints[1], DEPLOYMENT.endpoints[3]
    assert fetch.deprecated == Deprecation(
        deprecated_in="1.4.0", removed_in="2.0.0", successor_method="FETCH", successor_path="/works"
    )
    assert reserve.required_scopes == ("lending:write",)
    assert reserve.error_names == ("volume_on_loan", "reader_unknown")


def test_every_schema_compiles() -> None:
    for endpoint in DEPLOYMENT.endpoints:
        assert isinstance(compile_schema(endpoint.input_schema), Validator)
        assert isinstance(compile_schema(endpoint.output_schema), Validator)


def test_the_recipe_keeps_its_steps_pattern_and_aggregation() -> None:
    (recipe,) = DEPLOYMENT.recipes
    assert (recipe.name, recipe.version, recipe.aggregation) == ("digest-of-a-subject", "2", "merge")
    assert recipe.pattern == {"name_exact": "ANALYZE", "has_parameters": ("subject",)}
    assert [step.method for step in recipe.steps] == ["QUERY", "SUMMARIZE"]
    assert (recipe.steps[0].output, recipe.steps[1].input["style"]) == ("hits", constant("short"))


def test_both_forms_of_identity_documents_are_read() -> None:
    porter, reader = DEPLOYMENT.agents
    assert (porter.name, porter.scopes, porter.wildcards) == ("Porter", ("lending:read", "lending:write"), True)
    assert porter.methods == ("QUERY", "RESERVE")
    assert (reader.name, reader.scopes, reader.wildcards) == ("Reader", ("lending:read",), False)
    assert reader.status == "retired"


def test_settings_without_effect_are_reported() -> None:
    messages = {finding.message for finding in FINDINGS if finding.rule == "Y821"}
    assert messages == {
        "this server does not act on [policies] negotiable",
        "this server does not act on [synthesis] policies, session_duration",
        "this server does not act on [audit] path",
        "this server does not act on [policies.rcns] enabled, min_trust_tier, max_negotiations_per_minute",
        "this server does not act on [policies.oauth] enabled",
    }
    assert sum(finding.rule == "D114" for finding in FINDINGS) == 2
    assert not [finding for finding in FINDINGS if finding.rule == "D105"]


def test_old_spellings_are_read_and_reported() -> None:
    old = {finding.pointer for finding in FINDINGS if finding.rule == "D107"}
    assert old == {
        "/endpoint/semantic/confidence_guidance",
        "/endpoint/semantic/impact_tier",
        "/endpoint/handler/reference",
    }

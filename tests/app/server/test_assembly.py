"""A service, put together."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.service import Bench, echo, make_endpoint

from bespeak.app.server.assembly import assemble, first_written
from bespeak.contract.agent import Agent
from bespeak.contract.data_set import DataColumn, DataSet
from bespeak.contract.policy import FLOOR_METHODS, MethodPolicy, Policies
from bespeak.contract.service import DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.errors import ConfigError, ContractError
from bespeak.text.source.tree import Location

SERVICE = Service(identity=ServerIdentity(server_id="a.example", operator="A", contact="a@a.example"))


@pytest.mark.parametrize("server_id", ["", " ", "a\nb", "a\r\nEvil: yes", "a\x00"])
def test_a_server_id_that_no_header_can_carry_is_refused(server_id: str) -> None:
    with pytest.raises(ConfigError, match="server_id"):
        assemble(replace(SERVICE, identity=replace(SERVICE.identity, server_id=server_id)))


def test_a_catalog_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="no-such-catalog"):
        assemble(replace(SERVICE, catalog="no-such-catalog.json"))


def test_the_floor_is_there_without_any_endpoint() -> None:
    assembled = assemble(SERVICE)
    assert assembled.findings == []
    assert {method for method, path in assembled.registrar.endpoints if path == "/"} >= set(FLOOR_METHODS)


def test_unsupported_features_are_disabled_with_a_warning() -> None:
    agent = Agent(agent_id="a" * 64, name="concierge")
    policies = Policies(synthesis_enabled=True, wildcards_accepted=True)
    vocabulary = Vocabulary(domain="hospitality", negotiable=True)
    service = replace(SERVICE, policies=policies, vocabulary=vocabulary)
    assembled = assemble(replace(service, agents=(agent,), agent_disclosure="authenticated"), stored=False)
    assert [finding.severity for finding in assembled.findings] == ["warning"] * 4
    proven = assemble(replace(SERVICE, agents=(agent,), agent_disclosure="authenticated"), verifies=True)
    assert proven.findings == []
    assert assembled.registrar.service.vocabulary == Vocabulary(domain="hospitality")
    assert assembled.registrar.policies.synthesis_enabled is False
    assert assembled.registrar.policies.wildcards_accepted is False


ROOMS = DataManifest(
    available_data=(
        DataSet(name="rooms", sensitivity="low", target=list, columns=(DataColumn("number", {"type": "integer"}),)),
    )
)


@pytest.mark.requirement("AGIS-8.2-5")
def test_service_is_negotiable_only_with_synthesis_and_a_data_manifest() -> None:
    negotiating = replace(SERVICE, policies=Policies(synthesis_enabled=True), vocabulary=Vocabulary(negotiable=True))
    bare = assemble(negotiating)
    assert [finding.message for finding in bare.findings] == [
        "vocabulary.negotiable is true, but there is no data manifest"
    ]
    assert bare.registrar.service.vocabulary == Vocabulary()
    fixed = assemble(replace(SERVICE, vocabulary=Vocabulary(negotiable=True), data_manifest=ROOMS))
    assert "policies.synthesis_enabled is false" in fixed.findings[0].message
    silent = assemble(replace(negotiating, vocabulary=None, data_manifest=ROOMS))
    assert silent.registrar.service.vocabulary == Vocabulary(negotiable=True)


def test_data_sets_are_steps_and_nothing_else() -> None:
    bench = Bench(assemble(replace(SERVICE, data_manifest=ROOMS)))
    assert ("QUERY", "/data/rooms") in bench.routes.steps
    assert ("QUERY", "/data/rooms") not in bench.routes.endpoints
    assert bench.send("QUERY", "/data/rooms", {}).status == 404
    assert bench.send("DISCOVER", "/").json["data_manifest"] == {
        "available_data": [{"class": "rooms", "sensitivity": "low"}]
    }
    assert "/data/" not in bench.send("DISCOVER", "/", accept="application/agis").response.body.decode()


def test_server_with_a_store_negotiates_where_its_policy_says_so() -> None:
    vocabulary = Vocabulary(domain="hospitality", negotiable=True)
    service = replace(SERVICE, policies=Policies(synthesis_enabled=True), vocabulary=vocabulary, data_manifest=ROOMS)
    assembled = assemble(service)
    assert assembled.findings == []
    assert assembled.registrar.service.vocabulary == vocabulary
    assert assembled.registrar.policies.synthesis_enabled
    paths = {path for _, path in assembled.registrar.endpoints}
    assert {"/proposals", "/proposals/{proposal_id}"} <= paths
    assert "/proposals" not in {path for _, path in assemble(SERVICE).registrar.endpoints}


@pytest.mark.parametrize("methods", [MethodPolicy(legacy=("GETT",)), MethodPolicy(custom=("X-FOO",))])
@pytest.mark.requirement("API-9.4-2")
def test_a_wrong_method_policy_is_fatal(methods: MethodPolicy) -> None:
    with pytest.raises(ContractError, match="policies"):
        assemble(replace(SERVICE, policies=Policies(methods=methods)))


def test_a_manifest_without_a_store_is_as_old_as_the_oldest_endpoint_file(tmp_path: Path) -> None:
    for name, age in (("a.toml", 1_777_593_600), ("b.toml", 1_800_000_000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    book = make_endpoint("BOOK", "/room", echo)
    files = [str(tmp_path / name) for name in ("b.toml", "a.toml", "missing.toml")]
    endpoints = tuple(replace(book, path=f"/room{n}", location=Location(file)) for n, file in enumerate(files))
    assert first_written(replace(SERVICE, endpoints=endpoints)) == "2026-05-01T00:00:00Z"
    assert first_written(SERVICE) is None

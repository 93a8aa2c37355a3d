"""Two contracts: endpoints that come, go and stay."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.evolution.contracts import BOOK, MIRRORED, book, told

from bespeak.app.server.assembly import list_builtins
from bespeak.checks.evolution.change import canonical
from bespeak.checks.evolution.contract_diff import (
    Contract,
    diff_contracts,
    diff_services,
    manifest_contract,
    service_contract,
)
from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.policy import SERVER_ENDPOINTS, MethodPolicy, Policies, Redirect, is_of_server
from bespeak.contract.service import DataClass, DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.documents.manifest_json import parse_manifest
from bespeak.documents.projections.agtp_manifest import project_manifest


def contract(*endpoints: Endpoint, **fields: Any) -> Contract:
    return Contract(endpoints=endpoints, **fields)


def test_removed_endpoint_is_breaking_unless_only_its_parameter_names_differ() -> None:
    assert told(diff_contracts(contract(BOOK), contract())) == [("C101", "breaking")]
    assert told(diff_contracts(contract(), contract(BOOK))) == [("C102", "safe")]
    one, other = book(path="/room/{id}"), book(path="/room/{number}")
    assert told(diff_contracts(contract(one), contract(other))) == [("C103", "breaking")]


@rows(
    "removed_in, version, level",
    *(("2.0.0", version, "risky") for version in ("2.0.0", "2.1.0")),
    *(("2.0.0", version, "breaking") for version in ("1.9.0", None)),
    *((end, "2.0.0", "breaking") for end in (None, "soon")),
)
def test_removal_after_the_announced_end_is_risky(removed_in: str | None, version: str | None, level: str) -> None:
    fate = Deprecation(deprecated_in="1.0.0", removed_in=removed_in, successor_method="RESERVE")
    [change] = diff_contracts(contract(book(deprecated=fate)), contract(version=version))
    assert (change.rule, change.level) == ("C101", level)
    if level == "risky":
        assert change.help == "Clients must call RESERVE."


def test_built_in_methods_are_not_reported_as_missing_in_a_file() -> None:
    floor = book(method="QUERY", path="/", builtin=True)
    assert diff_contracts(contract(BOOK, floor), contract(BOOK)) == []
    assert diff_contracts(contract(BOOK), contract(BOOK, floor)) == []
    assert told(diff_contracts(contract(floor), contract(book(method="QUERY", path="/", errors=())))) == [
        ("C112", "safe")
    ]


def test_endpoints_or_fields_that_change_in_the_same_way_have_two_fingerprints() -> None:
    old = contract(BOOK, book(path="/suite"))
    new = contract(book(is_idempotent=False), book(path="/suite", is_idempotent=False))
    assert len({change.fingerprint for change in diff_contracts(old, new)}) == 2

    def needing(*names: str) -> Endpoint:
        return book(input_schema={"properties": {"a": {}, "b": {}}, "required": list(names)})

    assert len({change.fingerprint for change in diff_contracts(contract(needing()), contract(needing("a", "b")))}) == 2


names = st.sampled_from(["a", "b", "c"])
schema = st.fixed_dictionaries(
    {"properties": st.dictionaries(names, st.sampled_from([{}, {"type": "string"}, {"enum": [1, 2]}]), max_size=2)},
    optional={"required": st.lists(names, unique=True), "additionalProperties": st.booleans()},
)
endpoints = st.builds(
    book,
    method=st.sampled_from(["BOOK", "CANCEL"]),
    path=st.sampled_from(["/room", "/suite"]),
    impact=st.sampled_from(["informational", "reversible", "irreversible"]),
    is_idempotent=st.booleans(),
    confidence=st.sampled_from([0.1, 0.9]),
    confidence_guidance=st.sampled_from([None, 0.5]),
    mcp_tool_name=st.sampled_from([None, "book"]),
    errors=st.lists(names, unique=True).map(lambda found: tuple(DeclaredError(name) for name in found)),
    required_scopes=st.lists(st.sampled_from(["a:b", "c:d"]), unique=True).map(tuple),
    deprecated=st.sampled_from([None, Deprecation(deprecated_in="1.0.0")]),
    input_schema=schema,
    output_schema=schema,
)
contracts = st.builds(
    lambda found, allow, negotiable: contract(
        *{endpoint.key: endpoint for endpoint in found}.values(),
        policies=Policies(methods=MethodPolicy(allow=allow)),
        vocabulary=Vocabulary(negotiable=negotiable),
    ),
    st.lists(endpoints, max_size=3),
    st.sampled_from(["*", ("BOOK",), ("BOOK", "CANCEL")]),
    st.booleans(),
)


@given(contracts)
def test_a_contract_does_not_differ_from_itself(one: Contract) -> None:
    assert diff_contracts(one, one) == []


@given(contracts, contracts)
def test_reversed_comparison_reports_the_mirror_of_every_change(old: Contract, new: Contract) -> None:
    there = sorted(
        (MIRRORED[change.rule], change.endpoint, change.pointer, canonical(change.new), canonical(change.old))
        for change in diff_contracts(old, new)
    )
    back = sorted(
        (change.rule, change.endpoint, change.pointer, canonical(change.old), canonical(change.new))
        for change in diff_contracts(new, old)
    )
    assert there == back


@given(contracts, contracts)
def test_fingerprints_are_unique(old: Contract, new: Contract) -> None:
    found = diff_contracts(old, new)
    assert len({change.fingerprint for change in found}) == len(found)


def policies(**fields: Any) -> Contract:
    return Contract(endpoints=(BOOK,), policies=Policies(**fields))


def methods(**fields: Any) -> Contract:
    return policies(methods=MethodPolicy(**fields))


def words(**fields: Any) -> Contract:
    return Contract(vocabulary=Vocabulary(**fields))


def data(*classes: DataClass, **fields: Any) -> Contract:
    return Contract(vocabulary=Vocabulary(), data_manifest=DataManifest(available_data=classes, **fields))


STAYS = DataClass(name="stays", formats=("json",))
OLD_NAME = Redirect(from_method="RESERVE", to_method="BOOK", to_path="/room")
OTHER_TARGET = Redirect(from_method="RESERVE", to_method="LEND")

CASES: list[tuple[Contract, Contract, str, str]] = [
    (policies(wildcards_accepted=True), policies(), "C170", "breaking"),
    (policies(), policies(anonymous_discovery=False), "C170", "breaking"),
    (policies(scope_required_for_invocation=False), policies(scope_required_for_invocation=True), "C170", "breaking"),
    (policies(scope_required_for_invocation=True), policies(scope_required_for_invocation=False), "C171", "safe"),
    (policies(synthesis_enabled=True), policies(), "C170", "breaking"),
    (policies(max_synthesis_depth=9), policies(max_synthesis_depth=3), "C170", "risky"),
    (policies(max_synthesis_depth=3), policies(max_synthesis_depth=9), "C171", "safe"),
    (methods(), methods(disallow=("BOOK",)), "C172", "breaking"),
    (methods(disallow=("BOOK",)), methods(), "C173", "safe"),
    (methods(allow=("BOOK", "CANCEL")), methods(allow=("BOOK",)), "C172", "breaking"),
    (methods(legacy=("GET",)), methods(), "C172", "breaking"),
    (methods(custom=("FROBNICATE",)), methods(), "C172", "breaking"),
    (methods(), methods(redirects=(OLD_NAME,)), "C178", "safe"),
    (methods(), methods(redirects=(Redirect(from_method="BOOK", to_method="LEND"),)), "C178", "breaking"),
    (methods(redirects=(OLD_NAME,)), methods(), "C179", "breaking"),
    (methods(redirects=(OLD_NAME,)), methods(redirects=(OTHER_TARGET,)), "C180", "risky"),
    (Contract(catalog_version="1.0.0"), Contract(catalog_version="1.1.0"), "C181", "safe"),
    (Contract(catalog_version="1.0.0"), Contract(catalog_version="2.0.0"), "C181", "risky"),
    (words(negotiable=True), words(), "C185", "breaking"),
    (words(), words(negotiable=True), "C186", "safe"),
    (words(declared_verbs=("BOOK", "FIND")), words(declared_verbs=("FIND",)), "C187", "risky"),
    (words(domain="travel"), words(domain="stays"), "C189", "risky"),
    (words(namespace="a"), words(), "C189", "risky"),
    (data(STAYS), data(), "C190", "breaking"),
    (data(), data(STAYS), "C191", "safe"),
    (data(STAYS), data(DataClass(name="stays")), "C192", "breaking"),
    (data(STAYS), data(DataClass(name="stays", formats=("json", "csv"))), "C193", "safe"),
    (data(STAYS), data(DataClass(name="stays", formats=("json",), requires_authorization=True)), "C192", "breaking"),
    (data(STAYS), data(DataClass(name="stays", formats=("json",), sensitivity="high")), "C194", "risky"),
    (data(STAYS), data(DataClass(name="stays", formats=("json",), description="Nights.")), "C104", "safe"),
    (data(STAYS, pre_auth_discovery=True), data(STAYS), "C192", "breaking"),
]


@pytest.mark.parametrize(("old", "new", "rule", "level"), CASES, ids=[f"{case[2]}-{case[3]}" for case in CASES])
def test_each_part_has_its_rule(old: Contract, new: Contract, rule: str, level: str) -> None:
    assert told(diff_services(old, new)) == [(rule, level)]
    [there], [back] = diff_services(old, new), diff_services(new, old)
    mirrored = (MIRRORED[there.rule], there.pointer, there.new, there.old)
    assert (back.rule, back.pointer, back.old, back.new) == mirrored


def test_a_list_of_allowed_methods_refuses_every_other() -> None:
    assert [change.message for change in diff_services(methods(), methods(allow=("CANCEL",)))] == [
        "BOOK is refused (allow)",
        "every other method is refused (allow)",
    ]


def test_unspecified_parts_are_not_compared() -> None:
    full = Contract(
        policies=Policies(wildcards_accepted=True),
        vocabulary=Vocabulary(negotiable=True),
        data_manifest=DataManifest(available_data=(STAYS,)),
        catalog_version="1.0.0",
    )
    assert diff_services(full, Contract()) == diff_services(Contract(), full) == diff_services(full, full) == []
    # The path of a catalog is not a version.
    assert diff_services(Contract(catalog_version="mine.json"), Contract(catalog_version="1.0.0")) == []


IDENTITY = ServerIdentity(server_id="rooms.example", operator="Rooms", contact="ops@rooms.example")


def test_a_service_and_its_manifest_are_one_contract() -> None:
    policies = Policies(wildcards_accepted=True)
    service = Service(identity=IDENTITY, endpoints=(BOOK,), policies=policies, document_version="1.2.0")
    raw = project_manifest(service, service.endpoints, policies, service.catalog, updated="2026-01-01")
    manifest, _ = parse_manifest(msgspec.json.encode(raw))
    assert manifest is not None
    assert diff_contracts(service_contract(service, policies), manifest_contract(manifest)) == []
    assert manifest_contract(manifest).version == "1.2.0"


def test_built_in_endpoints_are_marked_and_complete_and_a_document_may_have_no_policies() -> None:
    listed = [{"method": method, "path": path} for method, path in SERVER_ENDPOINTS]
    entries = [*listed, {"method": "BOOK", "path": "/"}]
    manifest, _ = parse_manifest(msgspec.json.encode({"endpoints": entries}))
    assert manifest is not None
    assert [endpoint.method for endpoint in manifest_contract(manifest).endpoints if not endpoint.builtin] == ["BOOK"]
    service = Service(identity=IDENTITY, vocabulary=Vocabulary(version="1.0.0"))
    assert service_contract(service) == Contract(vocabulary=Vocabulary(version="1.0.0"), version="1.0.0")
    own = list_builtins(Service(identity=IDENTITY, policies=Policies(synthesis_enabled=True)), stored=True)
    assert all(is_of_server(*endpoint.key, endpoint.namespace) for endpoint in own)
    assert {endpoint.key for endpoint in own} == {*SERVER_ENDPOINTS, ("QUERY", "/messages"), ("RESUME", "/")}
    # Messages of an operator are part of the contract.
    assert not is_of_server("QUERY", "/messages", "mail")
    assert not is_of_server("QUERY", "/messages", None)

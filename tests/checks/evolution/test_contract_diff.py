"""Two contracts: endpoints that come, go and stay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.evolution.contracts import BOOK, MIRRORED, book, told

from bespeak.checks.evolution.change import canonical
from bespeak.checks.evolution.contract_diff import Contract, diff_contracts
from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.service import Vocabulary


def contract(*endpoints: Endpoint, **fields: Any) -> Contract:
    return Contract(endpoints=endpoints, **fields)


def test_removed_endpoint_is_breaking_and_a_new_one_is_not() -> None:
    assert told(diff_contracts(contract(BOOK), contract())) == [("C101", "breaking")]
    assert told(diff_contracts(contract(), contract(BOOK))) == [("C102", "safe")]


@pytest.mark.parametrize(
    ("removed_in", "version", "level"),
    [
        ("2.0.0", "2.0.0", "risky"),
        ("2.0.0", "2.1.0", "risky"),
        ("2.0.0", "1.9.0", "breaking"),
        ("2.0.0", None, "breaking"),
        (None, "2.0.0", "breaking"),
        ("soon", "2.0.0", "breaking"),
    ],
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


def test_endpoints_match_regardless_of_parameter_names() -> None:
    one, other = book(path="/room/{id}"), book(path="/room/{number}")
    assert told(diff_contracts(contract(one), contract(other))) == [("C103", "breaking")]


def test_two_endpoints_that_change_in_the_same_way_have_two_fingerprints() -> None:
    old = contract(BOOK, book(path="/suite"))
    new = contract(book(is_idempotent=False), book(path="/suite", is_idempotent=False))
    assert len({change.fingerprint for change in diff_contracts(old, new)}) == 2


def test_two_fields_that_become_required_have_two_fingerprints() -> None:
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

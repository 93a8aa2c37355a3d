from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.catalog.catalog import Catalog, Verb
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import MethodPolicy, Policies

Check = Callable[..., list[str]]


def test_a_verb_of_the_catalog_is_fine(check: Check) -> None:
    assert check(method="RESERVE") == []


@pytest.mark.requirement("API-3.2-1")
@pytest.mark.parametrize("method", ["", "BO", "book", "BOOK_ROOM", "X-BOOK", "B" * 20_000, "BÜCHEN"])
def test_a_method_that_is_no_word_of_capital_letters_is_refused(check: Check, method: str) -> None:
    assert "M201" in check(method=method)


@pytest.mark.requirement("API-3.2-2", "API-13.2-2")
def test_a_method_outside_the_catalog_is_refused_and_near_verbs_are_named(room: Endpoint, catalog: Catalog) -> None:
    (finding,) = check_endpoint(replace(room, method="BOOKK"), catalog, Policies())
    assert finding.rule == "M202"
    assert "catalog 1.1.0" in finding.message
    assert "BOOK" in finding.help


@pytest.mark.requirement("API-4.5-2")
def test_a_verb_that_was_removed_is_refused_and_the_catalogs_are_named(room: Endpoint, catalog: Catalog) -> None:
    verbs = {name: verb for name, verb in catalog.verbs.items() if name != "BOOK"}
    (finding,) = check_endpoint(room, replace(catalog, version="2.0.0", verbs=verbs), Policies())
    assert (finding.rule, finding.severity) == ("M202", "error")
    assert "BOOK /room: BOOK is not in catalog 2.0.0 (catalog 1.1.0 has it)" in finding.message


@pytest.mark.requirement("API-3.3-1")
def test_a_custom_method_of_the_policy_is_fine(check: Check) -> None:
    assert check(method="FROBNICATE", policy=MethodPolicy(custom=("FROBNICATE",))) == []
    assert "M201" in check(method="FROB_IT", policy=MethodPolicy(custom=("FROB_IT",)))


@pytest.mark.requirement("API-3.6-6")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "get"])
def test_a_legacy_verb_is_refused_even_where_the_server_opts_in(check: Check, method: str) -> None:
    assert check(method=method, policy=MethodPolicy(legacy=("GET", "POST", "PUT", "DELETE", "PATCH"))) == ["M203"]


def test_a_deprecated_verb_is_only_a_warning_that_names_the_successor(room: Endpoint, catalog: Catalog) -> None:
    old = Verb(
        name="BOOK",
        categories=("transaction",),
        description="",
        deprecated_in="1.2.0",
        removed_in="2.0.0",
        successor="RESERVE",
    )
    (finding,) = check_endpoint(room, replace(catalog, verbs={**catalog.verbs, "BOOK": old}), Policies())
    assert (finding.rule, finding.severity) == ("M204", "warning")
    assert "goes in 2.0.0" in finding.message
    assert finding.help == "Use RESERVE."


def test_an_endpoint_no_request_can_reach_is_a_warning(check: Check) -> None:
    assert check(policy=MethodPolicy(disallow=("BOOK",))) == ["M205"]
    assert check(policy=MethodPolicy(allow=("RESERVE",))) == ["M205"]
    assert check(policy=MethodPolicy(allow=("BOOK",))) == []

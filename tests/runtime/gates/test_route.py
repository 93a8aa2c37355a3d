"""A request that says `Method-Grammar: AGIS/1.0` has its method judged by AGIS (9.2, 13)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.process import serving
from tests.service import Bench, build, echo, make_endpoint

from bespeak.app.server.connect import connect_sync
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.service import Vocabulary


def clinic(**fields: Any) -> Bench:
    """Build a service with one verb of the catalog and one of its vocabulary."""
    return build(
        make_endpoint("BOOK", "/visit", echo),
        make_endpoint("ADMIT", "/patient", echo, capability="transaction"),
        vocabulary=Vocabulary(declared_verbs=("BOOK", "ADMIT")),
        **fields,
    )


@pytest.mark.requirement("AGIS-9.2-4", "AGIS-13-5")
@pytest.mark.parametrize(
    ("method", "rule", "says"),
    [
        ("BOOKING", "M211", "Write BOOK."),
        ("BOOK_TABLE", "M213", "Write BOOK /table."),
        ("SEARCH2", "M212", "Write SEARCH."),
        ("FindRestaurant", "M213", "Write FIND /restaurant."),
        ("AVAILABLE", "M231", "Write CHECK or FIND"),
        ("EXISTS", "M232", "Write CHECK or FIND"),
        ("STATUS", "M233", "Write CHECK or TRACK"),
        ("GET", "M230", "Write FETCH or RETRIEVE."),
        ("get", "M230", "Write FETCH or RETRIEVE."),
        ("CONNECT", "M230", "Write LINK or JOIN."),
        ("CANCLE", "M216", "Did you mean CANCEL?"),
        ("XQZ", "M216", "`DISCOVER /methods`"),
    ],
)
def test_a_method_against_the_grammar_is_a_454_with_rule_and_advice(method: str, rule: str, says: str) -> None:
    reply = clinic().send(method, "/visit", method_grammar="AGIS/1.0")
    assert (reply.status, reply.error["code"]) == (454, "grammar-violation")
    assert says in reply.error["message"]
    (finding,) = reply.error["findings"]
    assert finding["rule"] == rule
    assert says in finding["help"]


@pytest.mark.requirement("AGIS-4.1-7")
@pytest.mark.parametrize("method", ["BOOK", "book", "Book"])
def test_methods_are_compared_without_regard_to_case(method: str) -> None:
    assert clinic().send(method, "/visit", method_grammar="AGIS/1.0").status == 200


def test_without_the_header_the_catalog_decides_to_the_letter() -> None:
    assert clinic().send("BOOK", "/visit").status == 200
    assert clinic().send("book", "/visit").status == 459


def test_a_verb_of_the_vocabulary_is_a_custom_method() -> None:
    assert clinic().send("ADMIT", "/patient", method_grammar="AGIS/1.0").status == 200
    assert clinic().send("ADMIT", "/patient").status == 200
    assert build().send("ADMIT", "/patient").status == 459


def test_a_custom_method_of_the_policy_passes() -> None:
    bench = build(
        make_endpoint("GLAZE", "/pots", echo, capability="creation"),
        policies=Policies(scope_required_for_invocation=False, methods=MethodPolicy(custom=("GLAZE",))),
    )
    assert bench.send("GLAZE", "/pots").status == 200
    assert bench.send("GLAZE", "/pots", method_grammar="AGIS/1.0").status == 200


def test_a_custom_method_of_the_operator_is_accepted_regardless_of_the_lexicon() -> None:
    policies = Policies(scope_required_for_invocation=False, methods=MethodPolicy(custom=("OPEN",)))
    door = make_endpoint("OPEN", "/door", echo)
    assert build(door).send("OPEN", "/door", method_grammar="AGIS/1.0").status == 454
    assert build(door, policies=policies).send("OPEN", "/door", method_grammar="AGIS/1.0").status == 200


def test_a_declared_verb_is_still_checked_for_its_form() -> None:
    policies = Policies(methods=MethodPolicy(custom=("BOOKING",)))
    bench = build(vocabulary=Vocabulary(declared_verbs=("BOOKING", "FLOOBLE")), policies=policies)
    assert bench.send("BOOKING", "/visit", method_grammar="AGIS/1.0").status == 454
    assert bench.send("FLOOBLE", "/visit", method_grammar="AGIS/1.0").status == 404


def test_a_disallowed_method_stays_disallowed() -> None:
    policies = Policies(scope_required_for_invocation=False, methods=MethodPolicy(disallow=("ADMIT",)))
    assert clinic(policies=policies).send("ADMIT", "/patient", method_grammar="AGIS/1.0").status == 405


@pytest.mark.requirement("AGIS-1.3-1", "AGIS-13-15")
@pytest.mark.parametrize("verb", ["DISCHARGE", "BUCHEN", "discharge"])
def test_a_tier_4_method_reaches_routing_without_being_declared(verb: str) -> None:
    """AGIS 1.3: such a method is accepted without registration; only the endpoint is missing."""
    reply = clinic().send(verb, "/patient", method_grammar="AGIS/1.0")
    assert (reply.status, reply.error["code"]) == (405, "method-not-allowed")
    assert clinic().send(verb, "/nowhere", method_grammar="AGIS/1.0").status == 404
    assert clinic().send(verb, "/patient").status == 459


def test_a_borderline_verb_passes() -> None:
    bench = build(make_endpoint("PROCESS", "/payment", echo))
    assert bench.send("PROCESS", "/payment", method_grammar="AGIS/1.0").status == 200


def test_a_legacy_verb_is_refused_under_agis_even_with_opt_in() -> None:
    policies = Policies(scope_required_for_invocation=False, methods=MethodPolicy(legacy=("GET",)))
    bench = build(make_endpoint("FETCH", "/guest", echo), policies=policies)
    assert bench.send("GET", "/guest").status == 200
    assert bench.send("GET", "/guest", method_grammar="AGIS/1.0").status == 454


@pytest.mark.parametrize("value", ["AGIS/1.0", "agis/1.0", " AGIS/1.0 "])
def test_the_grammar_is_named_in_any_case(value: str) -> None:
    assert clinic().send("BOOKING", "/visit", method_grammar=value).status == 454


@pytest.mark.parametrize("value", ["AGIS/2.0", "AGIS", "", "AMG/1.0", "x" * 5000])
def test_another_grammar_is_a_400_that_names_the_one_there_is(value: str) -> None:
    reply = clinic().send("BOOK", "/visit", method_grammar=value)
    assert (reply.status, reply.error["code"]) == (400, "unsupported-grammar")
    assert reply.error["supported"] == ["AGIS/1.0"]
    assert len(reply.response.body) < 1000


def test_a_method_of_twenty_thousand_letters_is_refused_with_a_short_answer() -> None:
    reply = clinic().send("Q" * 20_000, method_grammar="AGIS/1.0")
    assert reply.status == 454
    assert len(reply.response.body) < 1000


@pytest.mark.process
def test_the_lexicon_is_not_read_before_the_first_use() -> None:
    code = """
from tests.service import build, echo, make_endpoint
from bespeak.text.language.lexicon import lexicon
bench = build(make_endpoint("BOOK", "/visit", echo))
print(bench.send("BOOK", "/visit").status, bench.send("BOOKING", "/visit").status, lexicon.cache_info().currsize)
print(bench.send("BOOK", "/visit", method_grammar="AGIS/1.0").status, lexicon.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["200 459 0", "200 1"]


@pytest.mark.process
@pytest.mark.requirement("AGIS-9.2-4", "AGIS-13-5")
def test_a_served_hotel_judges_methods_over_the_wire() -> None:
    grammar = {"Method-Grammar": "AGIS/1.0"}
    with serving() as served, connect_sync(served.uri) as hotel:
        refused = hotel.request("RESERVING", "/room", headers=grammar)
        assert refused.status == 454
        assert refused.error is not None
        assert refused.error.code == "grammar-violation"
        assert "Write RESERVE." in refused.error.message
        assert hotel.request("RESERVING", "/room").status == 459
        assert hotel.request("discover", "/methods", headers=grammar).status == 200
        assert hotel.request("DISCOVER", "/methods", headers={"Method-Grammar": "AGIS/9.9"}).status == 400


@pytest.mark.process
def test_a_server_that_is_not_asked_does_without_english_and_the_rules_of_documents() -> None:
    code = (
        "import sys, bespeak.app.server.assembly; "
        "idle = 'bespeak.text.language', 'bespeak.checks.lint.passes', 'yaml'; "
        "print([name for name in sys.modules if name.startswith(idle)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

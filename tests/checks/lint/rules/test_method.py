from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.lint.conftest import ROOM

from bespeak.checks.lint.registration import check_endpoint
from bespeak.checks.lint.rules import method as rules
from bespeak.checks.lint.rules.method import method_findings
from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.text.diagnostics.diagnostic import Diagnostic, declared_in
from bespeak.text.diagnostics.report import page_of
from bespeak.text.language.verb_form import HTTP_METHODS

Check = Callable[..., list[str]]


FROB = MethodPolicy(custom=("FROBNICATE",))
LEGACY = MethodPolicy(legacy=("GET", "POST", "PUT", "DELETE", "PATCH"))


@pytest.mark.requirement("API-3.2-1", "API-3.3-1", "API-3.6-6")
@rows(
    "fields, expected",
    ({"method": "RESERVE"}, []),
    *(({"method": method}, ["M201"]) for method in ("", "BO", "book", "BOOK_ROOM", "X-BOOK", "B" * 20_000)),
    ({"method": "BÜCHEN"}, ["M201"]),
    ({"method": "FROBNICATE", "policy": FROB}, []),
    ({"method": "FROB_IT", "policy": MethodPolicy(custom=("FROB_IT",))}, ["M201"]),
    # A server that opts in to legacy verbs maps them; no endpoint is declared with one.
    *(({"method": verb, "policy": LEGACY}, ["M203"]) for verb in ("GET", "POST", "PUT", "DELETE", "PATCH", "get")),
    # No request can reach an endpoint whose method is not admitted.
    ({"policy": MethodPolicy(disallow=("BOOK",))}, ["M205"]),
    ({"policy": MethodPolicy(allow=("RESERVE",))}, ["M205"]),
    ({"policy": MethodPolicy(allow=("BOOK",))}, []),
)
def test_registration_takes_admitted_methods_of_catalog_and_policy(
    check: Check, fields: dict[str, Any], expected: list[str]
) -> None:
    assert check(**fields) == expected


@pytest.mark.requirement("API-3.2-2", "API-13.2-2", "API-4.5-2")
def test_method_outside_the_catalog_is_refused_with_near_verbs_or_the_catalogs_that_had_it(
    room: Endpoint, catalog: Catalog
) -> None:
    (finding,) = check_endpoint(replace(room, method="BOOKK"), catalog, Policies())
    assert finding.rule == "M202"
    assert "catalog 1.1.0" in finding.message
    assert "BOOK" in finding.help
    verbs = {name: verb for name, verb in catalog.verbs.items() if name != "BOOK"}
    (finding,) = check_endpoint(room, replace(catalog, version="2.0.0", verbs=verbs), Policies())
    assert (finding.rule, finding.severity) == ("M202", "error")
    assert "BOOK /room: BOOK is not in catalog 2.0.0 (catalog 1.1.0 has it)" in finding.message


def test_a_deprecated_verb_is_only_a_warning_that_names_the_successor(room: Endpoint, catalog: Catalog) -> None:
    old = replace(catalog.verbs["BOOK"], deprecated_in="1.2.0", removed_in="2.0.0", successor="RESERVE")
    (finding,) = check_endpoint(room, replace(catalog, verbs={**catalog.verbs, "BOOK": old}), Policies())
    assert (finding.rule, finding.severity) == ("M204", "warning")
    assert "goes in 2.0.0" in finding.message
    assert finding.help == "Use RESERVE."


CATALOG = load_bundled()


def judge(method: str, **surroundings: Any) -> list[Diagnostic]:
    declared = Declared(replace(ROOM, method=method.upper()), "/endpoints/0", {"method": method})
    context = LintContext(catalog=CATALOG, **surroundings)
    return [*rules.check_syntax(declared, context), *rules.check_class(declared, context)]


def found(method: str, **surroundings: Any) -> list[str]:
    return [finding.rule for finding in judge(method, **surroundings)]


TABLE_5 = "BOOK FIND SCHEDULE RECONCILE"  # what a method may look like
TABLE_6 = "BOOK FIND CANCEL AUTHORIZE TRIAGE DISPATCH RESERVE LOCATE"  # what a method may mean
TABLE_11 = (  # starters
    "BOOK FIND SCHEDULE CANCEL QUERY SUMMARIZE AUTHORIZE TRANSFER SUBMIT NOTIFY VERIFY DISPATCH LOCATE RESERVE TRIAGE "
    "RECONCILE RECOMMEND ESCALATE EXTRACT VALIDATE GENERATE MONITOR APPROVE REJECT RETRIEVE REVOKE FETCH SEARCH "
    "PURCHASE SYNC ROUTE ADMIT"
)


@pytest.mark.requirement("AGIS-1.2-1", "AGIS-4.1-2", "AGIS-4.2-1")
@pytest.mark.parametrize("method", sorted({*TABLE_5.split(), *TABLE_6.split(), *TABLE_11.split()}))
def test_verbs_that_the_draft_names_as_right_are_right(method: str) -> None:
    assert found(method) == []


@pytest.mark.requirement("AGIS-4.2-2", "AGIS-9.2-1", "AGIS-4.2-1")
@rows(
    "method, rule",
    *((method, "M231") for method in ("AVAILABLE", "ACTIVE", "OPEN", "VALID")),
    *((method, "M232") for method in ("EXISTS", "IS", "HAS")),
    *((method, "M233") for method in ("DATA", "STATUS", "INFO", "RESTAURANT")),
)
def test_states_and_nouns_are_not_methods(method: str, rule: str) -> None:
    (finding,) = judge(method)
    assert (finding.rule, finding.severity) == (rule, "error")
    assert f"{method} is not an action" in finding.message
    assert finding.help.startswith("Write ")


@pytest.mark.requirement("AGIS-4.2-3")
def test_borderline_verb_is_a_warning_with_plainer_ones_and_a_verb_with_its_particle_advice() -> None:
    (finding,) = judge("PROCESS")
    assert (finding.rule, finding.severity) == ("M234", "warning")
    assert "SETTLE" in finding.help
    (finding,) = judge("CHECKOUT")
    assert (finding.rule, finding.severity) == ("M215", "info")


@pytest.mark.requirement("AGIS-4.3-1")
@pytest.mark.parametrize("method", sorted(HTTP_METHODS))
def test_the_methods_of_http_are_refused_in_any_case_with_a_verb_in_their_place(method: str) -> None:
    for written in (method, method.lower()):
        (finding,) = judge(written, allowed_verbs=frozenset({method}))
        assert finding.rule == "M230"
        assert HTTP_METHODS[method][0] in finding.help


def test_the_verb_in_place_of_a_legacy_one_is_the_catalogs() -> None:
    for name, legacy in CATALOG.legacy.items():
        assert HTTP_METHODS[name][0] == legacy.preferred
    assert {verb for verbs in HTTP_METHODS.values() for verb in verbs} <= CATALOG.names


@pytest.mark.parametrize("verbs", HTTP_METHODS.values())
def test_suggestions_are_valid_methods(verbs: tuple[str, ...]) -> None:
    assert [found(verb) for verb in verbs] == [[] for _ in verbs]


@pytest.mark.requirement("AGIS-4.1-1", "AGIS-4.1-2", "AGIS-4.1-3", "AGIS-4.1-4", "AGIS-4.1-5", "AGIS-4.1-8")
@rows(
    "method, rule, says, advice",
    ("BOOKING", "M211", "BOOKING is a present participle", "Write BOOK."),
    ("BOOK_TABLE", "M213", "joins 2 words with an underscore", "Write BOOK /table."),
    ("book-reservation", "M213", "joins 2 words with a hyphen", "Write BOOK /reservation."),
    ("FindRestaurant", "M213", "FindRestaurant joins 2 words", "Write FIND /restaurant."),
    ("SEARCH2", "M212", "SEARCH2 has a digit in it", "Write SEARCH."),
    ("BOOKS", "M211", "a third person", "Write BOOK."),
    ("BOOKED", "M211", "a past tense", "Write BOOK."),
    ("TAKEN", "M211", "a past participle", "Write TAKE."),
    ("GETTING", "M211", "a present participle", "Write FETCH."),
    ("BOOK TABLE", "M210", "'BOOK TABLE' is 2 words", "Write BOOK /table."),
    ("BOOK\tTABLE", "M210", "is 2 words", "Write BOOK /table."),
    (" BOOK ", "M210", "has spaces around it", "Write BOOK."),
    ("R\u00c9SERVER", "M212", "'\u00c9'", "Write RESERVER."),
    ("\u4e88\u7d04", "M212", "'\u4e88'", "letters A to Z"),
    ("BOOK!", "M212", "'!'", "Write BOOK."),
    ("_BOOK", "M212", "an underscore", "Write BOOK."),
    ("logistics.DISPATCH", "M212", "the namespace logistics", "Write DISPATCH;"),
    ("CANCEL_BOOKING", "M213", "an underscore", "Write CANCEL /booking."),
    ("FINDRESTAURANT", "M213", "FINDRESTAURANT joins a verb and a noun", "Write FIND /restaurant."),
    ("GetRestaurant", "M213", "joins 2 words", "Write FETCH /restaurant."),
    ("RestaurantFind", "M213", "joins 2 words", "Write FIND /restaurant."),
    ("isAvailable", "M213", "joins 2 words", "Write CHECK."),
    ("CANCLE", "M216", "is not a known verb", "Did you mean CANCEL?"),
    ("FLOOBLE", "M218", "is not a verb of English", "name it in allowed-verbs"),
)
def test_message_describes_the_fault_and_advice_the_fix(method: str, rule: str, says: str, advice: str) -> None:
    (finding,) = judge(method)
    assert (finding.rule, finding.severity) == (rule, "warning" if rule == "M218" else "error")
    assert says in finding.message
    assert advice in finding.help


@pytest.mark.requirement("AGIS-4.1-6")
@pytest.mark.parametrize("method", ["book", "Book"])
def test_another_case_is_a_warning_that_can_be_repaired_safely(method: str) -> None:
    (finding,) = judge(method)
    assert (finding.rule, finding.severity) == ("M214", "warning")
    assert finding.fix is not None
    assert finding.fix.safe
    assert [(change.op, change.at, change.value) for change in finding.fix.changes] == [("replace", "/method", "BOOK")]


@pytest.mark.parametrize("method", ["BOOKING", "SEARCH2", "BOOK_TABLE", "CANCLE", "GET", "BOOK TABLE"])
def test_a_repair_that_may_change_the_meaning_says_so_and_repairs(method: str) -> None:
    (finding,) = judge(method)
    assert finding.fix is not None
    assert not finding.fix.safe
    assert found(finding.fix.changes[0].value) == []


@pytest.mark.parametrize(
    ("method", "rules"), [("GO", ["M217"]), ("DO", ["M217", "M234"]), ("B" * 33, ["M216", "M217"]), ("", []), (" ", [])]
)
def test_a_method_agtp_cannot_carry_is_a_warning(method: str, rules: list[str]) -> None:
    assert found(method) == rules


@pytest.mark.parametrize("method", ["OPEN", "BOOKING", "FLOOBLE", "FINDRESTAURANT", "PROCESS", "STATUS"])
def test_allowed_verb_is_accepted(method: str) -> None:
    assert found(method) != []
    assert found(method, allowed_verbs=frozenset({method})) == []
    assert found(method, policies=Policies(methods=MethodPolicy(custom=(method,)))) == []


@pytest.mark.requirement("AGIS-13-15")
@pytest.mark.parametrize("method", ["RESERVAR", "BUCHEN", "YOYAKU", "CREAR", "SENDEN"])
def test_a_verb_of_another_language_is_valid_and_silent_once_it_is_vouched_for(method: str) -> None:
    (finding,) = judge(method)
    assert (finding.rule, finding.severity, "allowed-verbs" in finding.help) == ("M218", "warning", True)
    assert found(method, allowed_verbs=frozenset({method})) == []
    assert found(f"{method}2", allowed_verbs=frozenset({f"{method}2"})) == ["M212"]


def test_allowed_verbs_cannot_have_invalid_characters() -> None:
    assert found("BOOK_TABLE", allowed_verbs=frozenset({"BOOK_TABLE"})) == ["M213"]


@pytest.mark.parametrize("method", ["OPEN", "PROCESS", "CHECKOUT", "CONNECT"])
def test_outside_of_agis_documents_a_verb_of_the_catalog_is_right(method: str) -> None:
    assert found(method, agis=False) == []


TIER_1 = "QUERY DISCOVER DESCRIBE SUMMARIZE PLAN PROPOSE EXECUTE DELEGATE ESCALATE CONFIRM SUSPEND NOTIFY"
TIER_2 = (
    "FETCH SEARCH SCAN PULL IMPORT FIND EXTRACT FILTER VALIDATE TRANSFORM TRANSLATE NORMALIZE PREDICT RANK MAP "
    "REGISTER SUBMIT TRANSFER PURCHASE SIGN MERGE LINK LOG SYNC PUBLISH REPLY SEND REPORT MONITOR ROUTE RETRY PAUSE "
    "RESUME RUN CHECK QUOTE BOOK SCHEDULE LEARN COLLABORATE"
)


@pytest.mark.requirement("AGIS-1.3-2")
@pytest.mark.parametrize("method", [*TIER_1.split(), *TIER_2.split()])
def test_registered_methods_conform(method: str) -> None:
    assert [finding.rule for finding in judge(method) if finding.severity == "error"] == []


def test_only_words_the_draft_names_are_wrong_in_the_catalog_and_passes_have_own_findings() -> None:
    wrong = {(verb, finding.rule) for verb in CATALOG.names for finding in judge(verb) if finding.severity == "error"}
    assert wrong == {("OPEN", "M231"), ("CONNECT", "M230"), ("TRACE", "M230")}
    context = LintContext(catalog=CATALOG)
    declared = Declared(replace(ROOM, method="DO"), "/endpoints/0", {"method": "do"})
    assert [finding.rule for finding in rules.check_syntax(declared, context)] == ["M217", "M214"]
    assert [finding.rule for finding in rules.check_class(declared, context)] == ["M234"]


def test_method_alone_can_be_judged_and_a_declared_word_is_a_verb_but_not_in_any_form() -> None:
    (finding,) = method_findings("BOOKING", frozenset(), CATALOG)
    said = (finding.rule, finding.message, finding.help)
    assert said == ("M211", "BOOKING is a present participle", "Write BOOK.")
    assert method_findings("BOOKING", frozenset({"BOOKING"}), CATALOG) == []
    known = frozenset({"FLOOBLE", "BOOKING"})
    assert method_findings("FLOOBLE", frozenset(), CATALOG, known) == []
    assert [finding.rule for finding in method_findings("BOOKING", frozenset(), CATALOG, known)] == ["M211"]


@pytest.mark.parametrize(
    "rule", [rule for rule in declared_in(rules).values() if page_of(rule).notation == "yaml"], ids=lambda rule: rule.id
)
def test_the_examples_of_a_rule_show_it(rule: Any) -> None:
    bad, good = (text.partition("\n")[0].removeprefix("method: ") for text in (page_of(rule).bad, page_of(rule).good))
    assert rule.id in found(bad)
    assert found(good) == []


@given(st.text(max_size=80))
def test_any_text_is_judged_in_few_words(method: str) -> None:
    for finding in method_findings(method, frozenset(), CATALOG):
        assert len(finding.message) + len(finding.help) < 500

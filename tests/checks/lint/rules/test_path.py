from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.lint.conftest import ROOM

from bespeak.checks.lint.registration import check_endpoint, check_service
from bespeak.checks.lint.rules import path as rules
from bespeak.checks.lint.rules.path import PathClaims
from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.text.diagnostics.diagnostic import Diagnostic, declared_in
from bespeak.text.diagnostics.report import page_of

Check = Callable[..., list[str]]


@pytest.mark.requirement("API-5.1-3", "API-5.2-2", "API-5.2-4", "API-5.3-2", "API-5.3-3", "API-5.3-4", "API-13.2-3")
@rows(
    "path, expected",
    *((path, ["P301"]) for path in ("", "room", "/room/", "/a b", "/caf\u00e9")),
    *((path, ["P302"]) for path in ("/book", "/rooms/b-o_o-k", "/order/{room_id}")),
    *((path, []) for path in ("/rooms/12:30", "/rooms/:", "/a:b/c:")),  # a literal may contain a colon
    *((f"/rooms/{name}", ["P303"]) for name in ("x-{room_id}", "{+room_id}", "{?room_id}", "{}")),
    ("/rooms/{room_id}/{room_id}", ["P304"]),
    ("/rooms/{room_id}", []),
    ("/rooms/{room_id}/{guest_id}", ["P305"]),
)
def test_registration_takes_paths_of_the_grammar(check: Check, path: str, expected: list[str]) -> None:
    assert check(path=path) == expected


@rows(
    "path, rule, advice",
    ("/rooms/search", "P302", "Remove 'search', or name the resource"),
    ("/rooms/<room_id>", "P301", "Write a parameter as {room_id}."),
    ("/rooms/<int:room_id>", "P301", "Write a parameter as {room_id}."),
    ("/rooms/:room_id", "P308", "Write a parameter as {room_id}."),
)
def test_the_advice_says_what_to_write(room: Endpoint, catalog: Catalog, path: str, rule: str, advice: str) -> None:
    (finding,) = check_endpoint(replace(room, path=path), catalog, Policies())
    assert finding.rule == rule
    assert advice in finding.help


CATALOG = load_bundled()


def judge(path: str, method: str = "FIND", **surroundings: Any) -> list[Diagnostic]:
    declared = Declared(replace(ROOM, method=method, path=path), "/endpoints/0", {})
    return list(rules.check(declared, LintContext(catalog=CATALOG, **surroundings)))


def found(path: str, method: str = "FIND", **surroundings: Any) -> list[str]:
    return [finding.rule for finding in judge(path, method, **surroundings)]


TABLE_7 = ("/reservation", "/restaurant/{id}", "/patient-record/{id}", "/calendar/event/{id}")
ALSO_VERBS = ("/order", "/book", "/report", "/booking", "/order-history", "/funds", "/account/{id}/transactions")


@pytest.mark.requirement("AGIS-5-2", "AGIS-5-4", "AGIS-5-5")
@pytest.mark.parametrize("path", [*TABLE_7, *ALSO_VERBS, "/restaurants"])
def test_nouns_in_lower_case_are_right(path: str) -> None:
    assert found(path) == []


@pytest.mark.requirement("AGIS-5-3", "AGIS-5-4", "AGIS-5-7")
@rows(
    "path, rule, advice",
    ("/bookReservation", "P330", "Write /reservation."),
    ("/get-restaurant", "P330", "Write /restaurant."),
    ("/reservation?type=dinner", "P334", "Write /reservation."),
    ("/RESERVATION", "P322", "Write /reservation."),
)
def test_verbs_queries_and_capitals_are_refused_with_what_to_write(path: str, rule: str, advice: str) -> None:
    (finding,) = judge(path)
    assert (finding.rule, finding.severity) == (rule, "error")
    assert advice in finding.help


@pytest.mark.requirement("AGIS-5-6")
@rows(
    "path, rule, severity, says",
    ("/book-reservation", "P332", "error", "'book-reservation' repeats the method"),
    ("/bookReservation", "P332", "error", "'bookReservation' repeats the method"),
    ("/book", "P333", "error", "'book' repeats the method"),
    ("/restaurant/{id}/book-table", "P332", "error", "'book-table' repeats the method"),
)
def test_a_path_does_not_repeat_its_method(path: str, rule: str, severity: str, says: str) -> None:
    for method in ("BOOK", "book"):
        (finding,) = judge(path, method)
        assert (finding.rule, finding.severity) == (rule, severity)
        assert says in finding.message


@pytest.mark.requirement("AGIS-5-1", "AGIS-5-2", "AGIS-5-3", "AGIS-5-4", "AGIS-5-5")
@rows(
    "path, rule, says, written",
    ("reservation", "P320", "does not begin with a slash", "/reservation"),
    ("agtp://acme.example/reservation", "P320", "is an address", "/reservation"),
    ("/reservation/", "P321", "ends with a slash", "/reservation"),
    ("/reservation//guest", "P321", "an empty segment", "/reservation/guest"),
    ("/Reservation", "P322", "has capitals", "/reservation"),
    ("/Order/ITEM", "P322", "(and 1 more)", "/order/item"),
    ("/patientRecord/{id}", "P323", "separated by capitals", "/patient-record/{id}"),
    ("/HTTPHeader", "P323", "separated by capitals", "/http-header"),
    ("/patient_record/{id}", "P324", "an underscore", "/patient-record/{id}"),
    ("/room/:id", "P325", "':id' is not a valid parameter", "/room/{id}"),
    ("/room/<id>", "P325", "'<id>' is not a valid parameter", "/room/{id}"),
    ("/room/<int:id>", "P325", "is not a valid parameter", "/room/{id}"),
    ("/room/[id]", "P325", "is not a valid parameter", "/room/{id}"),
    ("/room/{id", "P325", "is not a valid parameter", "/room/{id}"),
    ("/room/id}", "P325", "is not a valid parameter", "/room/{id}"),
    ("/room/{{id}}", "P325", "is not a valid parameter", "/room/{id}"),
    ("/room/{room-id}", "P325", "is not a valid parameter", "/room/{room_id}"),
    ("/room/{}", "P325", "is not a valid parameter", None),
    ("/room/v{n}", "P325", "is not a valid parameter", None),
    ("/room/{?page}", "P325", "'{?page}' is not a valid parameter", None),
    ("/room/{id}/guest/{id}", "P326", "{id} occurs twice", None),
    ("/{id}", "P327", "begins with the parameter '{id}'", None),
    ("/2024/report", "P327", "begins with the number", None),
    ("/", "P327", "does not name a resource", None),
    ("/v1/room", "P328", "begins with the version v1", "/room"),
    ("/v1", "P328", "begins with the version v1", None),
    ("/create", "P330", "'create' is the verb create", None),
    ("/validate", "P330", "'validate' is the verb validate", "/validation"),
    ("/exists", "P330", "a form of the verb exist", None),
    ("/is-available", "P330", "asks a question with is", None),
    ("/bulk-delete", "P330", "ends with the verb delete", None),
    ("/room/{id}/confirm", "P330", "'confirm' is the verb confirm", "/room/{id}/confirmation"),
    ("/search-hotel", "P331", "begins with the verb search", "/hotel"),
    ("/room#top", "P334", "is a fragment", "/room"),
    ("/menu.pdf", "P335", "has a dot", None),
    ("/order item", "P335", "has a space", None),
    ("/caf%C3%A9", "P335", "has a percent sign", None),
    ("/caf\u00e9", "P335", "has '\u00e9'", None),
    ("/order--item", "P335", "is not between words", None),
    ("/-order", "P335", "is not between words", None),
    (" /order", "P335", "has spaces around it", "/order"),
)
def test_finding_describes_the_fault_and_fix_the_replacement(
    path: str, rule: str, says: str, written: str | None
) -> None:
    finding = judge(path)[0]
    assert finding.rule == rule
    assert says in finding.message
    assert (finding.fix and finding.fix.changes[0].value) == written
    assert finding.help


@pytest.mark.parametrize(
    "path", ["reservation", "/reservation/", "/Reservation", "/patientRecord", "/patient_record", "/room/:id", "/a?b"]
)
def test_a_repair_repairs(path: str) -> None:
    (finding,) = judge(path)
    assert finding.fix is not None
    assert found(finding.fix.changes[0].value) == []


def test_only_what_keeps_the_meaning_is_repaired_without_asking() -> None:
    safe = {finding.rule for path in ("x", "/x/", "/X") for finding in judge(path) if finding.fix and finding.fix.safe}
    assert safe == {"P320", "P321", "P322"}
    for path in ("/patientRecord", "/patient_record", "/room/:id", "/room?x", "/get-room", "/v1/room"):
        (finding,) = judge(path)
        assert finding.fix is not None
        assert not finding.fix.safe


def test_a_rule_speaks_once_of_a_path_however_long() -> None:
    findings = judge("/create/patient_record" * 10_000)
    assert [finding.rule for finding in findings] == ["P330", "P324"]
    assert max(len(finding.help) for finding in findings) < 300


def test_allowed_segment_root_outside_agis_and_missing_path_are_accepted() -> None:
    for segment in ("create", "get-restaurant", "patient_record", "v1"):
        assert found(f"/{segment}") != []
        assert found(f"/{segment}", allowed_segments=frozenset({segment})) == []
    assert found("/", agis=False) == []
    assert found("") == []


@pytest.mark.parametrize(
    "rule",
    [
        rule
        for rule in declared_in(rules).values()
        if page_of(rule).notation == "yaml" and rule.id not in ("P306", "P307")
    ],
    ids=lambda rule: rule.id,
)
def test_the_examples_of_a_rule_show_it(rule: Any) -> None:
    def entry(text: str) -> list[str]:
        written = yaml.safe_load(text)
        return found(written["path"], written["method"])

    assert entry(page_of(rule).bad) == [rule.id]
    assert entry(page_of(rule).good) == []


@given(st.text(alphabet="/{}:<>[]?#%._- aAbB1\u00e9", max_size=60) | st.text(max_size=60))
def test_any_text_is_judged_and_safe_repairs_come_to_an_end(path: str) -> None:
    for _ in range(8):
        findings = judge(path)
        assert len({finding.rule for finding in findings}) == len(findings)
        fixes = [finding.fix for finding in findings if finding.fix and finding.fix.safe]
        if not fixes:
            return
        path = fixes[0].changes[0].value
    raise AssertionError("the repairs go round in circles")


@pytest.mark.requirement("API-5.4-5", "API-5.4-6")
def test_two_templates_that_match_equally_well_are_refused_with_both_places(room: Endpoint) -> None:
    first = replace(room, path="/rooms/{room_id}")
    second = replace(room, path="/{kind}/{room_id}")
    third = replace(room, path="/{kind}/first")
    assert [(endpoint, finding.rule) for endpoint, finding in check_service([first, second, third])] == [
        (third, "P306")
    ]
    ((_, finding),) = check_service([first, third])
    assert "/rooms/{room_id} (room.toml:1)" in finding.message


def test_pair_is_claimed_once_by_usable_paths_and_another_method_may_have_the_template(room: Endpoint) -> None:
    endpoints = [replace(room, method=method, path="/rooms/{room_id}") for method in ("BOOK", "CANCEL", "FETCH")]
    assert check_service(endpoints) == []
    twin = replace(room)
    assert [(endpoint is twin, finding.rule) for endpoint, finding in check_service([room, twin])] == [(True, "P307")]
    assert PathClaims().claim(replace(room, path="room")) is None


def test_collision_among_ten_thousand_templates_is_found(room: Endpoint) -> None:
    endpoints = [replace(room, path=f"/{{kind}}/n{number % 100}/{{id}}/m{number}") for number in range(10_000)]
    endpoints.append(replace(room, path="/{kind}/n7/x/{other}"))
    ((endpoint, finding),) = check_service(endpoints)
    assert endpoint is endpoints[-1]
    assert finding.rule == "P306"

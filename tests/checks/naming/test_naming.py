"""The measurement of names: task sets, conditions, choices in stages, and the statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bespeak.checks.naming.experiment import CONDITIONS, Option, Report, matching_with, measure, wilson
from bespeak.checks.naming.plot import draw, write_html
from bespeak.checks.naming.task_set import NamedEndpoint, bundled_sets, read_task_set
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.grammar.syntax import check_path
from bespeak.contract.matching.vectors import WORDS

SET = (
    NamedEndpoint(
        "BOOK /room", "POST /bookings", "create_booking", "Reserve a room.", ("book a room", "I'd like to stay")
    ),
    NamedEndpoint("CANCEL /room", "DELETE /bookings/{id}", "delete_booking", "Give a room up.", ("we won't come",)),
    NamedEndpoint("FIND /room", "GET /rooms", "list_rooms", "Show free rooms.", ("what is free?",)),
    NamedEndpoint("RATE /stay", "POST /ratings", "create_rating", "Say how it was.", ("it was lovely",)),
)


def by_description(request: str, options: tuple[Option, ...], most: int) -> Sequence[int]:
    """Choose by the description alone, as who trusts documentation does."""
    meant = next(one.description for one in SET if request in one.requests)
    return [place for place, one in enumerate(options) if one.description == meant]


def by_name(request: str, options: tuple[Option, ...], most: int) -> Sequence[int]:
    """Choose by the intent name alone, or by its verb."""
    meant = next(one.intent for one in SET if request in one.requests)
    return [place for place, one in enumerate(options) if one.name in (meant, meant.split()[0])]


def accuracies(report: Report) -> dict[tuple[str, str, int], float]:
    return {(one.naming, one.descriptions, one.stages): one.accuracy for one in report.conditions}


def test_bundled_sets_have_enough_requests_and_follow_the_rules_of_paths() -> None:
    sets = bundled_sets()
    endpoints = [endpoint for one in sets for endpoint in one]
    requests = [request for endpoint in endpoints for request in endpoint.requests]
    assert len(sets) >= 8
    assert len(requests) == len(set(requests)) >= 150
    verbs = load_bundled().names
    assert [one.intent for one in endpoints if check_path(one.intent.partition(" ")[2], verbs)] == []


def test_who_trusts_descriptions_is_always_right_if_they_are_kept_and_never_if_they_are_swapped() -> None:
    found = accuracies(measure([SET], by_description, "descriptions"))
    assert {found[naming, "kept", 1] for naming, *_ in CONDITIONS} == {1.0}
    assert {found[naming, "swapped", 1] for naming, *_ in CONDITIONS} == {0.0}


def test_who_trusts_intent_verbs_does_not_need_descriptions() -> None:
    report = measure([SET], by_name, "names")
    found = accuracies(report)
    for descriptions in ("kept", "removed", "swapped"):
        assert found["intent", descriptions, 1] == found["intent", descriptions, 2] == 1.0
        assert found["http", descriptions, 1] == 0.0
    gained = next(one for one in report.comparisons if one.first == "intent kept 1" and one.second == "http kept 1")
    assert (gained.difference, gained.interval, gained.only_first, gained.only_second) == (1.0, (1.0, 1.0), 5, 0)
    assert report.saying_the_verb == 1
    assert report.by_chance == 0.25


def test_two_stages_show_verbs_first_and_then_only_endpoints_with_the_chosen_ones() -> None:
    shown: list[tuple[str, ...]] = []

    def first(request: str, options: tuple[Option, ...], most: int) -> Sequence[int]:
        shown.append(tuple(one.name for one in options))
        return [place for place, one in enumerate(options) if one.verb == "POST"]

    measure([SET], first, "first", limit=1)
    at = next(number for number, names in enumerate(shown) if set(names) == {"POST", "DELETE", "GET"})
    assert set(shown[at + 1]) == {"POST /room", "POST /stay"}


def test_a_chooser_without_an_answer_is_wrong() -> None:
    report = measure([SET], lambda *_: [], "silent")
    assert set(accuracies(report).values()) == {0.0}


def test_the_same_seed_gives_the_same_report_and_a_limit_draws_requests() -> None:
    sets, choose = bundled_sets()[:2], matching_with(WORDS)
    one, same, other = (measure(sets, choose, "words", seed=seed, limit=10) for seed in (1, 1, 2))
    assert one == same != other
    assert one.tasks == 10


def test_fewer_tokens_are_shown_without_descriptions() -> None:
    report = measure([SET], by_name, "names")
    tokens = {(one.descriptions, one.stages): one.tokens for one in report.conditions if one.naming == "intent"}
    assert tokens["removed", 1] < tokens["kept", 1]


def test_intervals_are_those_of_the_textbook() -> None:
    assert wilson(8, 10) == (0.4902, 0.9433)
    assert wilson(0, 10) == (0.0, 0.2775)


def test_the_plot_is_svg_with_a_mark_for_each_condition_and_escapes_what_others_wrote() -> None:
    report = measure([SET], by_name, "<script>")
    root = ElementTree.fromstring(draw(report))
    circles = root.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == len(CONDITIONS) + 2 * sum(one.varied == "naming" for one in report.comparisons)
    assert "<script>" not in write_html(report)


def task_file(folder: Path, **changed: object) -> Path:
    rows = [one._asdict() for one in SET]
    rows[1] |= changed
    path = folder / "tasks.json"
    path.write_text(json.dumps({"service": "rooms", "endpoints": rows}))
    return path


def test_a_task_set_is_read_from_json_and_from_toml(tmp_path: Path) -> None:
    assert read_task_set(task_file(tmp_path)) == SET
    toml = tmp_path / "tasks.toml"
    rows = (
        f'[[endpoints]]\nintent = "{one.intent}"\nhttp = "{one.http}"\nfunction = "{one.function}"\n'
        f'description = "{one.description}"\nrequests = {json.dumps(one.requests)}\n'
        for one in SET
    )
    toml.write_text('service = "rooms"\n' + "".join(rows))
    assert read_task_set(toml) == SET


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"intent": "GET /room"}, "`intent` is 'GET /room', not a verb in capitals with a path, like BOOK /room"),
        ({"intent": "CANCEL /room/"}, "`intent` is 'CANCEL /room/', not a verb"),
        ({"http": "FETCH /rooms"}, "`http` is 'FETCH /rooms', not a method of HTTP"),
        ({"function": "book_room"}, "`function` is 'book_room', not create, get, list, update or delete"),
        ({"intent": "BOOK /room"}, "'BOOK /room' is the name of two endpoints"),
        ({"requests": []}, "an endpoint has 1 to 50 requests; got 0"),
        ({"requests": [" "]}, "a text has 1 to 1000 characters; got 1"),
        ({"requests": ["x" * 1001]}, "got 1001"),
        ({"requests": "book"}, "`requests`"),
        ({"descriptoin": "x"}, "`descriptoin` is not a known key"),
        ({"description": None}, "`description` is missing"),
    ],
)
def test_a_faulty_task_set_is_refused_with_what_is_wrong(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    findings = read_task_set(task_file(tmp_path, **changed))
    assert isinstance(findings, list)
    assert any(message in str(finding) for finding in findings), findings


@pytest.mark.parametrize("text", ["", "[]", "{", '{"service": "x", "endpoints": []}', '{"service": 1}', "\x00"])
def test_a_file_that_has_no_task_set_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    assert isinstance(read_task_set(path), list)

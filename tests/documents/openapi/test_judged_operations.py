"""The importer agrees with a person about operations in the style of public APIs, and its rules hold for any other."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.openapi.judged_operations import Judged, judge_group, read_table

from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.judgement import judge_all
from bespeak.documents.adoption.verb_choice import is_reading

CATALOG = load_bundled()
FLOORS = {"verb": 0.99, "impact": 0.99, "path": 0.98, "intent": 0.985}
"""Least share of the operations on which the importer must agree."""
READING = ("get", "list", "search", "query", "validate", "preview", "estimate", "check", "find")
CHANGING = ("create", "delete", "update", "send", "cancel", "submit", "remove", "publish", "restart", "assign")
NOUNS = ("compute", "project", "issue", "order", "report", "review", "load", "attribute", "stop", "pet", "schedule")
STYLES = (
    "{verb}{Noun}",
    "{Noun}_{Verb}",
    "{noun}s/{verb}-{noun}",
    "{noun}s_{verb}",
    "api.{noun}s.{verb}",
    "{noun}{Verb}",
)
PATHS = ("/{noun}s", "/{noun}", "/{noun}s/{{id}}", "/{noun}s/{{id}}/{verb}", "/v1/{noun}s/{verb}", "/x:{verb}", "/")


@st.composite
def candidates(draw: st.DrawFn) -> tuple[Candidate, str]:
    """Draw an operation and the verb of its name."""
    verb, noun = draw(st.sampled_from(READING + CHANGING)), draw(st.sampled_from(NOUNS))
    written = {"verb": verb, "Verb": verb.capitalize(), "noun": noun, "Noun": noun.capitalize()}
    said = draw(st.sampled_from(("", *READING, *CHANGING)))
    candidate = Candidate(
        method=draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])),
        path=draw(st.sampled_from(PATHS)).format(**written),
        name=draw(st.sampled_from(STYLES)).format(**written),
        name_kind="operationId",
        summary=f"{said.capitalize()} the {noun}" if said else "",
        successes=frozenset(draw(st.sets(st.sampled_from(["200", "201", "202", "204"]), max_size=2))),
        has_readable_state=draw(st.booleans()),
        is_undone=draw(st.booleans()),
    )
    return candidate, verb


def test_operations_are_judged_as_a_person_does() -> None:
    groups = read_table()
    wrong: Counter[str] = Counter()
    reports = []
    for one, facade in (pair for group in groups for pair in judge_group(group)):
        parts = one.wrong(facade)
        wrong.update(part.partition(" ")[0] for part in parts)
        reports += [f"{one.method} {one.path}: {', '.join(parts)}"] if parts else []
    total = sum(map(len, groups))
    shares = {part: 1 - wrong[part] / total for part in FLOORS}
    assert all(shares[part] >= floor for part, floor in FLOORS.items()), "\n".join([str(shares), *reports])


def test_no_judged_operation_that_changes_something_is_informational() -> None:
    def endangers(one: Judged, impact: str) -> bool:
        return impact == "informational" and "informational" not in one.impacts

    pairs = [pair for group in read_table() for pair in judge_group(group)]
    assert [one for one, facade in pairs if endangers(one, facade.endpoint.semantic.impact)] == []


@settings(max_examples=300)
@given(candidates())
def test_no_method_is_contradicted(drawn: tuple[Candidate, str]) -> None:
    candidate, _ = drawn
    [found] = judge_all([candidate], CATALOG)
    if candidate.method in ("GET", "HEAD"):
        assert is_reading(found.method, CATALOG)
    elif candidate.method != "POST":
        assert not is_reading(found.method, CATALOG)
        assert CATALOG.verbs[found.method].categories[0] not in ("retrieval", "analysis")


@settings(max_examples=300)
@given(candidates())
def test_doubt_of_the_importer_is_never_informational(drawn: tuple[Candidate, str]) -> None:
    [found] = judge_all([drawn[0]], CATALOG)
    contradicted = any("contradicts" in guess.why or "is said too" in guess.why for guess in found.guesses)
    assert not contradicted or found.semantic.impact != "informational"


@settings(max_examples=300)
@given(candidates())
def test_what_may_change_something_is_neither_informational_nor_repeated_as_reading(
    drawn: tuple[Candidate, str],
) -> None:
    candidate, verb = drawn
    [found] = judge_all([candidate], CATALOG)
    said = candidate.summary.partition(" ")[0].lower()
    writes = candidate.method not in ("GET", "HEAD")
    if writes and (candidate.method != "POST" or {verb, said} & set(CHANGING) or candidate.successes - {"200"}):
        assert found.semantic.impact != "informational"
    if found.semantic.impact != "informational" and candidate.method != "PUT":
        assert not found.semantic.is_idempotent or candidate.method == "DELETE"


@settings(max_examples=100)
@given(st.lists(candidates(), min_size=2, max_size=6))
def test_taken_name_is_resolved_by_the_path(drawn: list[tuple[Candidate, str]]) -> None:
    given_ones = [candidate for candidate, _ in drawn]
    together = [found.method for found in judge_all(given_ones, CATALOG)]
    alone = [judge_all([candidate], CATALOG)[0].method for candidate in given_ones]
    same = {"REPLACE": "UPDATE", "MODIFY": "UPDATE"}
    assert [same.get(verb, verb) for verb in together] == [same.get(verb, verb) for verb in alone]

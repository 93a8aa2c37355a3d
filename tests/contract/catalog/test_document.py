"""Catalog documents: every error has a finding, and the schema agrees."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.catalog import document
from bespeak.contract.catalog import document as bundled
from bespeak.contract.catalog.document import bundled_versions, load_bundled, open_catalog, parse_catalog, versions_with
from bespeak.contract.endpoint import CAPABILITIES
from bespeak.contract.grammar.syntax import is_method_name
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.errors import ContractError
from bespeak.protocol.exchange.refusal import Fault

Document = dict[str, Any]
Change = Callable[[Document], object]

GOOD: Document = {
    "version": "2.1.0",
    "embedded": list(FLOOR_METHODS),
    "legacy": {
        name: {"preferred": "QUERY", "description": "The HTTP way"}
        for name in ("GET", "POST", "PUT", "DELETE", "PATCH")
    },
    "categories": {"all": "Everything there is"},
    "verbs": {name: {"categories": ["all"], "description": "Do a thing"} for name in (*FLOOR_METHODS, "BOOK", "KEEP")},
}


def changed(change: Change) -> Document:
    document = copy.deepcopy(GOOD)
    change(document)
    return document


def entry(name: str, **members: object) -> Change:
    return lambda document: document["verbs"][name].update(members)


def put(key: str, value: object) -> Change:
    return lambda document: document.update({key: value})


def drop(key: str) -> Change:
    return lambda document: document.pop(key)


SHAPE_FAULTS: dict[str, tuple[Change, str, str]] = {
    "version missing": (drop("version"), "V552", ""),
    "embedded missing": (drop("embedded"), "V552", ""),
    "legacy missing": (drop("legacy"), "V552", ""),
    "categories missing": (drop("categories"), "V552", ""),
    "verbs missing": (drop("verbs"), "V552", ""),
    "verbs and methods": (put("methods", GOOD["verbs"]), "V560", ""),
    "version is a number": (put("version", 1.0), "V553", "/version"),
    "version malformed": (put("version", "1.0"), "V557", "/version"),
    "embedded is a text": (put("embedded", "QUERY"), "V553", "/embedded"),
    "embedded has a number": (put("embedded", [*FLOOR_METHODS, 7]), "V553", "/embedded/12"),
    "floor incomplete": (put("embedded", FLOOR_METHODS[1:]), "V558", "/embedded"),
    "legacy is a list": (put("legacy", []), "V553", "/legacy"),
    "legacy verb missing": (lambda document: document["legacy"].pop("PUT"), "V559", "/legacy"),
    "legacy verb too many": (lambda d: d["legacy"].update(HEAD=d["legacy"]["GET"]), "V559", "/legacy"),
    "legacy entry is a text": (lambda document: document["legacy"].update(GET="QUERY"), "V553", "/legacy/GET"),
    "preferred missing": (lambda document: document["legacy"]["GET"].pop("preferred"), "V552", "/legacy/GET"),
    "categories is a list": (put("categories", ["all"]), "V553", "/categories"),
    "category without meaning": (put("categories", {"all": ""}), "V553", "/categories/all"),
    "verbs is a list": (put("verbs", []), "V553", "/verbs"),
    "lower-case name": (lambda d: d["verbs"].update(book=d["verbs"]["BOOK"]), "V554", "/verbs/book"),
    "short name": (lambda d: d["verbs"].update(GO=d["verbs"]["BOOK"]), "V554", "/verbs/GO"),
    "name with underscore": (lambda d: d["verbs"].update(A_B=d["verbs"]["BOOK"]), "V554", "/verbs/A_B"),
    "HTTP method as verb": (lambda d: d["verbs"].update(PATCH=d["verbs"]["BOOK"]), "V554", "/verbs/PATCH"),
    "entry is null": (lambda document: document["verbs"].update(BOOK=None), "V553", "/verbs/BOOK"),
    "categories of a verb missing": (lambda d: d["verbs"]["BOOK"].pop("categories"), "V552", "/verbs/BOOK"),
    "no category": (entry("BOOK", categories=[]), "V553", "/verbs/BOOK/categories"),
    "category is a number": (entry("BOOK", categories=[1]), "V553", "/verbs/BOOK/categories/0"),
    "description missing": (lambda document: document["verbs"]["BOOK"].pop("description"), "V552", "/verbs/BOOK"),
    "description empty": (entry("BOOK", description=""), "V553", "/verbs/BOOK/description"),
    "deprecated_in malformed": (entry("BOOK", deprecated_in="soon"), "V557", "/verbs/BOOK/deprecated_in"),
    "removed_in is a number": (entry("BOOK", removed_in=3), "V553", "/verbs/BOOK/removed_in"),
    "successor is a list": (entry("BOOK", successor=["KEEP"]), "V553", "/verbs/BOOK/successor"),
}

REFERENCE_FAULTS: dict[str, tuple[Change, str, str]] = {
    "embedded verb not in verbs": (lambda document: document["verbs"].pop("PLAN"), "V556", "/embedded/4"),
    "preferred unknown": (lambda d: d["legacy"]["PUT"].update(preferred="REPLACE"), "V556", "/legacy/PUT/preferred"),
    "unknown category": (entry("BOOK", categories=["all", "odd"]), "V555", "/verbs/BOOK/categories/1"),
    "unknown successor": (entry("BOOK", deprecated_in="2.0.0", successor="RESERVE"), "V556", "/verbs/BOOK/successor"),
    "own successor": (entry("BOOK", deprecated_in="2.0.0", successor="BOOK"), "V556", "/verbs/BOOK/successor"),
}


@pytest.fixture(scope="module")
def schema() -> Validator:
    text = Path(bundled.__file__).with_name("data").joinpath("catalog.schema.json").read_text("utf-8")
    compiled = compile_schema(json.loads(text))
    assert not isinstance(compiled, Fault), compiled
    return compiled


def test_good_document_is_read_with_deprecations_and_either_key_for_methods() -> None:
    catalog, findings = parse_catalog(json.dumps(GOOD), "good.json")
    assert findings == []
    assert catalog is not None
    assert (catalog.version, catalog.names) == ("2.1.0", set(GOOD["verbs"]))
    assert catalog.legacy["GET"].preferred == "QUERY"
    document = changed(lambda document: document.update(methods=document.pop("verbs")))
    catalog, findings = parse_catalog(json.dumps(document).encode(), "methods.json")
    assert findings == []
    assert catalog is not None
    assert "BOOK" in catalog.verbs
    document = changed(entry("BOOK", deprecated_in="2.0.0", removed_in="3.0.0", successor="KEEP"))
    catalog, findings = parse_catalog(json.dumps(document), "deprecated.json")
    assert findings == []
    assert catalog is not None
    assert catalog.verbs["BOOK"].warning == "deprecated; successor=KEEP; removed_in=3.0.0"


@pytest.mark.requirement("API-3.1-3", "API-3.1-7", "API-4.2-1")
@pytest.mark.parametrize("name", [*SHAPE_FAULTS, *REFERENCE_FAULTS])
def test_each_fault_is_reported_with_its_location(name: str) -> None:
    change, rule, pointer = (SHAPE_FAULTS | REFERENCE_FAULTS)[name]
    catalog, findings = parse_catalog(json.dumps(changed(change)), "faulty.json")
    assert catalog is None
    assert [(finding.rule, finding.pointer) for finding in findings if finding.severity == "error"] == [(rule, pointer)]
    assert str(findings[0]).startswith("faulty.json: error[V5")


@pytest.mark.parametrize("name", SHAPE_FAULTS)
def test_the_schema_refuses_what_the_reader_refuses_for_its_shape(name: str, schema: Validator) -> None:
    assert not schema.is_valid(json.loads(json.dumps(changed(SHAPE_FAULTS[name][0]))))


@pytest.mark.parametrize("key", ["verbs", "methods"])
def test_the_schema_accepts_both_names_of_the_last_key(key: str, schema: Validator) -> None:
    assert schema.is_valid(changed(lambda document: document.update({key: document.pop("verbs")})))


@pytest.mark.parametrize("version", bundled.bundled_versions())
def test_the_schema_accepts_the_bundled_catalogs(version: str, schema: Validator) -> None:
    path = Path(bundled.__file__).with_name("data") / f"methods-{version}.json"
    assert schema.violations(json.loads(path.read_text("utf-8"))) == []


@rows(
    "change, rule",
    (put("curator", "us"), "V560"),
    (entry("BOOK", category="all"), "V560"),
    (entry("BOOK", removed_in="3.0.0"), "V561"),
    (entry("BOOK", deprecated_in="2.2.0"), "V561"),
    (entry("BOOK", deprecated_in="1.0.0", removed_in="2.0.0"), "V561"),
)
def test_usable_but_odd_value_is_a_warning(change: Change, rule: str) -> None:
    catalog, findings = parse_catalog(json.dumps(changed(change)), "odd.json")
    assert catalog is not None
    assert [(finding.rule, finding.severity) for finding in findings] == [(rule, "warning")]


@rows(
    "data, place",
    (b"", "bad.json:1:1"),
    (b'{\n  "version": 1.0.0\n}', "bad.json:2:17"),
    (b"\xff\xfe\x00", "bad.json"),
    (b'{"version": NaN}', "bad.json"),
    ("[" * 200_000, "bad.json"),
    ("\ud800", "bad.json"),
)
def test_invalid_json_is_one_error_with_its_location(data: bytes | str, place: str) -> None:
    catalog, findings = parse_catalog(data, "bad.json")
    assert catalog is None
    assert [finding.rule for finding in findings] == ["V551"]
    assert str(findings[0].location).startswith(place)


@pytest.mark.parametrize("data", ["[]", "null", "7", '"catalog"'])
def test_a_catalog_is_an_object(data: str) -> None:
    catalog, findings = parse_catalog(data, "bad.json")
    assert catalog is None
    assert [finding.rule for finding in findings] == ["V553"]


def test_many_faults_are_reported_in_part_and_a_long_value_is_cut() -> None:
    document = changed(put("verbs", {f"bad{number}": {"odd": 1} for number in range(10_000)}))
    catalog, findings = parse_catalog(json.dumps(document), "flood.json")
    assert catalog is None
    assert len(findings) <= 200
    _, findings = parse_catalog(json.dumps(changed(put("version", "9" * 100_000))), "long.json")
    assert len(str(findings[0])) < 300


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150)
@given(st.sampled_from(["version", "embedded", "legacy", "categories", "verbs", "methods"]), json_values, st.booleans())
def test_any_json_in_any_place_gives_a_catalog_or_an_error(key: str, value: object, whole: bool) -> None:
    document = value if whole else changed(put(key, value))
    catalog, findings = parse_catalog(json.dumps(document), "any.json")
    assert (catalog is None) == any(finding.severity == "error" for finding in findings)


@settings(max_examples=150)
@given(
    st.sampled_from(["categories", "description", "deprecated_in", "removed_in", "successor"]),
    json_values | st.sampled_from(["2.0.0", "KEEP", ["all"], ["all", "all"]]),
)
def test_a_document_the_reader_accepts_is_valid_by_the_schema(schema: Validator, key: str, value: object) -> None:
    document = changed(entry("BOOK", **{key: value}))
    catalog, _ = parse_catalog(json.dumps(document), "any.json")
    assert catalog is None or schema.is_valid(document)


@settings(max_examples=150)
@given(st.binary(max_size=60))
def test_any_bytes_give_findings_never_a_crash(data: bytes) -> None:
    catalog, findings = parse_catalog(data, "bytes.json")
    assert catalog is None
    assert findings


DATA = Path(document.__file__).with_name("data")

NEW_IN_1_1 = {
    *("TRANSLATE", "RECOMMEND", "LOG", "SYNC", "MAP", "EMBED", "SEND", "CHAIN", "BATCH", "RUN", "TRIAGE", "LEARN"),
    "COLLABORATE",
}

CATEGORIES = (
    *("discovery", "retrieval", "analysis", "transaction", "modification", "creation", "notification", "mechanics"),
    "domain_spanning",
)
PRIMARY = dict(zip(CATEGORIES, (43, 33, 72, 68, 67, 26, 31, 29, 56), strict=True))
MEMBERS = dict(zip(CATEGORIES, (45, 34, 84, 70, 83, 36, 36, 55, 78), strict=True))

every_version = pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])


def test_newer_of_two_bundled_versions_is_the_default_and_versions_with_a_verb_are_returned() -> None:
    assert bundled_versions() == ("1.0.0", "1.1.0")
    assert load_bundled().version == DEFAULT_CATALOG == "1.1.0"
    assert versions_with("BOOK") == ("1.0.0", "1.1.0")
    assert versions_with("LOG") == ("1.1.0",)
    assert versions_with("NONSENSE") == ()


@pytest.mark.requirement("API-3.1-4", "API-3.1-5", "API-3.1-6", "API-7.1-3", "API-3.2-3")
@every_version
def test_bundled_catalog_has_no_findings_and_the_verbs_and_categories_of_the_draft(version: str) -> None:
    _, findings = parse_catalog((DATA / f"methods-{version}.json").read_bytes(), "bundled")
    assert findings == []
    cognitive = ("QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN", "PROPOSE")
    mechanics = ("EXECUTE", "DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "NOTIFY")
    assert load_bundled(version).embedded == FLOOR_METHODS == cognitive + mechanics
    preferred = {name: verb.preferred for name, verb in load_bundled(version).legacy.items()}
    assert preferred == {"GET": "FETCH", "POST": "CREATE", "PUT": "REPLACE", "DELETE": "REMOVE", "PATCH": "MODIFY"}
    assert tuple(load_bundled(version).categories) == CAPABILITIES == CATEGORIES
    names = load_bundled(version).names
    assert all(is_method_name(name) for name in names)
    assert names.isdisjoint(LEGACY_VERBS)


@rows(
    "name, categories",
    ("DESCRIBE", ("mechanics", "discovery")),
    ("EXECUTE", ("transaction", "mechanics")),
    ("BOOK", ("transaction",)),
    ("SUBSCRIBE", ("retrieval", "notification", "mechanics")),
    ("RENEW", ("modification", "transaction", "domain_spanning")),
    ("ROLLBACK", ("modification", "mechanics", "domain_spanning")),
)
def test_primary_category_comes_first(name: str, categories: tuple[str, ...]) -> None:
    assert load_bundled("1.0.0").verbs[name].categories == categories


@pytest.mark.requirement("API-4.1-1")
def test_version_1_0_0_has_the_public_verbs_and_1_1_0_thirteen_more() -> None:
    assert load_bundled("1.1.0").names - load_bundled("1.0.0").names == NEW_IN_1_1
    assert load_bundled("1.0.0").names <= load_bundled("1.1.0").names
    verbs = load_bundled("1.0.0").verbs.values()
    assert len(verbs) == 425
    assert Counter(verb.categories[0] for verb in verbs) == PRIMARY
    assert Counter(category for verb in verbs for category in verb.categories) == MEMBERS
    assert Counter(len(verb.categories) for verb in verbs) == {1: 332, 2: 90, 3: 3}


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


def test_bundled_version_is_read_once_and_a_reference_may_be_a_path_from_the_base(tmp_path: Path) -> None:
    assert load_bundled("1.0.0") is load_bundled("1.0.0")
    with pytest.raises(ContractError, match=r"'9\.9\.9'.*1\.0\.0, 1\.1\.0"):
        load_bundled("9.9.9")
    (tmp_path / "own.json").write_bytes((DATA / "methods-1.0.0.json").read_bytes())
    assert open_catalog("1.0.0") == open_catalog("own.json", tmp_path) == (load_bundled("1.0.0"), [])


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

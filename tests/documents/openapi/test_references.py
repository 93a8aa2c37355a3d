"""References are followed inside the description and beside it, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.openapi import document_text
from bespeak.documents.openapi.document_text import DescriptionFile, Notices, RefResolver, Spot
from bespeak.text.source.tree import Location


def follow(data: dict[str, Any], reference: str, path: Path | None = None, **options: bool) -> tuple[Any, list[str]]:
    name = str(path) if path is not None else "api.json"
    document = DescriptionFile(name, data, lambda _: Location(name), path)
    notices = Notices(name)
    found = RefResolver(document, notices).follow(Spot({"$ref": reference}, document, "/here"), **options)
    return (found.value if found is not None else None), [f"{one.rule} {one.message}" for one in notices.all()]


DATA = {
    "a/b": {"c~d": {"e f": [10, {"g": 11}]}},
    "chain": {"$ref": "#/link"},
    "link": {"$ref": "#/a~1b"},
    "described": {"$ref": "#/a~1b", "description": "More."},
    "loop": {"$ref": "#/back"},
    "back": {"$ref": "#/loop"},
    "deep": {"$anchor": "named", "title": "Anchored"},
    "paths": {"x": {"schema": {"$defs": {"Room": {"title": "Room"}}, "items": {}}}},
}


@rows(
    "reference, value",
    ("#/a~1b/c~0d/e%20f/1/g", 11),
    ("#/a~1b/c~0d/e f/0", 10),
    ("#%2Fa~1b/c%7E0d/e%20f/0", 10),
    ("#/chain", DATA["a/b"]),
    ("api.json#/chain", DATA["a/b"]),
    ("#named", DATA["deep"]),
    ("#", DATA),
)
def test_pointer_resolves_to_its_target(reference: str, value: Any) -> None:
    assert follow(DATA, reference) == (value, [])


def test_reference_with_other_keys_may_be_kept_and_inner_definitions_are_found() -> None:
    assert follow(DATA, "#/described", alone=True)[0] == DATA["described"]
    assert follow(DATA, "#/described")[0] == DATA["a/b"]
    document = DescriptionFile("api.json", DATA, lambda _: Location("api.json"))
    spot = Spot({"$ref": "#/$defs/Room"}, document, "/paths/x/schema/items")
    target = RefResolver(document, Notices("api.json")).target(spot)
    assert (target.value, target.at) == ({"title": "Room"}, "/paths/x/schema/$defs/Room")


@rows(
    "reference, reason",
    ("#/nothing", "has no target"),
    ("#/a~1b/c~0d/e f/99", "has no target"),
    ("#/a~1b/c~0d/e f/" + "9" * 5000, "has no target"),
    ("#unknown", "anchor"),
    ("#/loop", "is circular"),
    ("https://evil.example/x.json#/a", "another server"),
    ("//evil.example/x.json", "another server"),
    ("file:///etc/passwd", "another server"),
    ("other.json#/a", "not read from a folder"),
)
def test_dangling_reference_is_an_error(reference: str, reason: str) -> None:
    value, found = follow(DATA, reference)
    assert value is None
    assert [one[:4] for one in found] == ["D161"]
    assert reason in found[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside.json").write_text('{"secret": 1}')
    inside = tmp_path / "api"
    (inside / "schemas").mkdir(parents=True)
    (inside / "schemas" / "room 1.yaml").write_text("Room: {title: Room}\nBack: {$ref: '../api.json#/own'}\n")
    (inside / "bad.json").write_text("{")
    (inside / "link.json").symlink_to(tmp_path / "outside.json")
    (inside / "api.json").write_text(json.dumps({"own": {"title": "Own"}}))
    return inside


def test_files_beside_the_description_are_read(folder: Path) -> None:
    data = {"own": {"title": "Own"}}
    path = folder / "api.json"
    assert follow(data, "schemas/room%201.yaml#/Room", path) == ({"title": "Room"}, [])
    assert follow(data, "./schemas/room%201.yaml#/Back", path) == ({"title": "Own"}, [])


@rows(
    "reference, reason",
    ("../outside.json#/secret", "outside the folder"),
    ("link.json#/secret", "outside the folder"),
    ("/etc/passwd", "outside the folder"),
    ("missing.json", "cannot be read"),
    ("bad.json", "cannot be read"),
    ("schemas", "cannot be read"),
    ("a\0b", ""),
)
def test_files_elsewhere_or_broken_are_errors(folder: Path, reference: str, reason: str) -> None:
    value, found = follow({}, reference, folder / "api.json")
    assert value is None
    assert any("D161" in one and reason in one for one in found)


def test_number_of_files_in_a_description_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_text, "MAX_FILES", 1)
    _, found = follow({}, "schemas/room%201.yaml", folder / "api.json")
    assert "exceeds the limit of" in found[0]

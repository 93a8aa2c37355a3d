"""Every requirement of the drafts has a test or a recorded reason, and every marker names a requirement."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.cases import rows

TESTS = Path(__file__).resolve().parents[1]
SPECS = TESTS.parent / "specs"

LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"}
BOUND = {"server", "client", "tool", "author", "other"}
STATUSES = {"deferred", "outside", "deviation"}
FIELDS = {"id", "section", "level", "applies", "text"}

ID = re.compile(r"(?P<draft>[A-Z]+)-(?P<section>(?:[1-9][0-9]*|[A-Z])(?:\.[1-9][0-9]*)*)-(?P<number>[1-9][0-9]*)")


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((SPECS / name).read_text(encoding="utf-8"))


def requirements() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = _load("requirements.toml")["requirement"]
    return entries


def markers_in(source: str) -> Iterator[tuple[str | None, int]]:
    """Return the ids in the `requirement` markers of a test file with their lines; None for one that is not a
    literal.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            for argument in node.args:
                literal = argument.value if isinstance(argument, ast.Constant) else None
                yield (literal if isinstance(literal, str) else None, node.lineno)


@cache
def marked() -> dict[str | None, list[str]]:
    """Return every id that a test names, with the places that name it."""
    places: dict[str | None, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        source = file.read_text(encoding="utf-8")
        for name, line in markers_in(source) if "requirement" in source else ():
            places.setdefault(name, []).append(f"{file.relative_to(TESTS)}:{line}")
    return places


def test_every_requirement_has_a_test_or_a_reason_and_not_both() -> None:
    named = marked()
    bare = [
        f"{entry['id']}: {entry['text']}"
        for entry in requirements()
        if "reason" not in entry and entry["id"] not in named
    ]
    assert not bare, f"{len(bare)} requirements have neither a test nor a reason:\n" + "\n".join(bare)
    stale = [
        f"{entry['id']}: {named[entry['id']]}" for entry in requirements() if "reason" in entry and entry["id"] in named
    ]
    assert not stale, "these have both a test and a reason why there is none; remove one of them:\n" + "\n".join(stale)


def test_every_marker_names_a_known_requirement_with_a_unique_id() -> None:
    known = {entry["id"] for entry in requirements()}
    unknown = [f"{name!r}: {places}" for name, places in marked().items() if name not in known]
    assert not unknown, "markers without a requirement:\n" + "\n".join(unknown)
    counts = Counter(entry["id"] for entry in requirements())
    assert not [name for name, count in counts.items() if count > 1]


def test_an_id_is_made_of_draft_section_and_a_running_number() -> None:
    drafts = {draft["id"] for draft in _load("drafts.toml")["draft"]}
    running: Counter[str] = Counter()
    for entry in requirements():
        match = ID.fullmatch(entry["id"])
        assert match is not None, entry["id"]
        assert match["draft"] in drafts
        assert match["section"] == entry["section"]
        section = f"{match['draft']}-{match['section']}"
        running[section] += 1
        assert int(match["number"]) == running[section], f"{entry['id']} is out of order"


def test_every_entry_is_complete_and_has_a_status_with_its_reason() -> None:
    for entry in requirements():
        assert entry.keys() >= FIELDS, entry
        assert entry.keys() <= FIELDS | {"covers", "status", "reason"}, entry
        assert entry["level"] in LEVELS
        assert entry["applies"] in BOUND
        assert 10 <= len(entry["text"]) <= 160, entry["id"]
    for entry in requirements():
        assert ("reason" in entry) == ("status" in entry), entry["id"]
        assert entry.get("status", "deferred") in STATUSES, entry["id"]
        assert len(entry.get("reason", "long enough")) >= 10, entry["id"]


def test_every_row_response_and_code_of_a_table_is_covered_by_one_requirement_of_its_section() -> None:
    wrong = {}
    for table in _load("methods.toml")["method"]:
        rows = [name for level in ("must", "should", "may") for name in table[level]]
        responses = ["response"] if table["response"] else []
        expected = Counter([*rows, *responses, "idempotent", *map(str, table["errors"])])
        place = f"{table['draft']}-{table['section']}-"
        covered = [entry for entry in requirements() if entry["id"].startswith(place)]
        found = Counter(name for entry in covered for name in entry.get("covers", ()))
        if found != expected:
            wrong[table["name"]] = {"missing": expected - found, "unknown or twice": found - expected}
    assert wrong == {}
    tabled = tuple(f"{table['draft']}-{table['section']}-" for table in _load("methods.toml")["method"])
    assert not [entry["id"] for entry in requirements() if "covers" in entry and not entry["id"].startswith(tabled)]


def test_single_tier_items_are_requirements_and_drafts_name_revision_and_date() -> None:
    items = [entry["id"] for entry in requirements() if entry["section"] == "13.1"]
    assert items == [f"API-13.1-{number}" for number in range(1, 14)]
    for draft in _load("drafts.toml")["draft"]:
        assert re.fullmatch(r"draft-[a-z0-9-]+", draft["name"])
        assert re.fullmatch(r"[0-9]{2}", draft["revision"])
        assert re.fullmatch(r"[0-9]{4}-[0-9]{2}", draft["date"])


@rows(
    "source, expected",
    ("@pytest.mark.requirement('API-3-1')\ndef test_a(): ...", ["API-3-1"]),
    ("@pytest.mark.requirement('API-3-1', 'API-3.1-1')\nasync def test_a(): ...", ["API-3-1", "API-3.1-1"]),
    ("pytestmark = [pytest.mark.anyio, pytest.mark.requirement('API-3-1')]", ["API-3-1"]),
    ("pytest.param(1, marks=pytest.mark.requirement('API-3-1'))", ["API-3-1"]),
    ("pytest.mark.requirement(NAME)", [None]),
    ("'pytest.mark.requirement(\"API-3-1\")'", []),
)
def test_markers_are_found_wherever_pytest_reads_them(source: str, expected: list[str | None]) -> None:
    assert [name for name, _ in markers_in(source)] == expected

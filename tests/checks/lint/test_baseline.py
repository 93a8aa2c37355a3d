"""Findings that were known before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.checks.lint.suppress import Baseline, fingerprint, read_baseline, stable_pointer
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding
from bespeak.text.source.tree import Location


def finding(name: str, rule: str = "P302") -> Finding:
    return Finding(Diagnostic(rule, "error", f"wrong {name}", Location("a.agis", 1), "/path"), name)


def entry(file: str) -> dict[str, str]:
    return {"rule": "P302", "file": file, "pointer": "/path", "message": "wrong"}


def test_finding_in_the_baseline_is_not_new_except_of_some_rules(tmp_path: Path) -> None:
    baseline = Baseline(tmp_path / "b.json", {"one": entry("a.agis")})
    assert baseline.split([finding("one"), finding("two")]) == ([finding("two")], {"one"})
    assert baseline.split([finding("one")], lambda rule: rule == "P302") == ([finding("one")], set())


def test_unmatched_entry_of_a_checked_or_missing_file_is_stale(tmp_path: Path) -> None:
    (tmp_path / "other.agis").touch()
    entries = {"here": entry("a.agis"), "fixed": entry("a.agis"), "gone": entry("b.agis"), "kept": entry("other.agis")}
    baseline = Baseline(tmp_path / "b.json", entries)
    stale = baseline.stale({"here"}, {"a.agis"}, tmp_path)
    assert [one.pointer for one in stale] == ["/findings/fixed", "/findings/gone"]
    assert {one.rule for one in stale} == {"D193"}


def test_writing_keeps_entries_of_unchecked_files_in_a_sorted_readable_file(tmp_path: Path) -> None:
    (tmp_path / "other.agis").touch()
    path = tmp_path / "b.json"
    Baseline(path, {"old": entry("a.agis"), "kept": entry("other.agis"), "gone": entry("b.agis")}).write()
    read_baseline(path).merged([(finding("new"), "a.agis")], {"a.agis"}, tmp_path).write()
    assert read_baseline(path).entries.keys() == {"kept", "new"}
    Baseline(path, {"2": entry("b"), "1": entry("c"), "3": entry("a")}).write()
    document = json.loads(path.read_text())
    assert list(document["findings"]) == ["3", "2", "1"]
    assert document["findings"]["3"] == entry("a")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 2, "findings": {}}', '{"format": 1}', "[" * 100_000])
def test_other_file_is_not_a_baseline(text: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="baseline"):
        read_baseline(path)


def test_unusable_baseline_is_reported_and_entries_of_an_address_stay_until_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_baseline(tmp_path)
    with pytest.raises(ConfigError, match="cannot be written"):
        Baseline(tmp_path, {}).write()
    url = "https://flights.test/.well-known/ai"
    baseline = Baseline(tmp_path / "b.json", {"f1": entry(url)})
    assert baseline.stale([], ["a.toml"], tmp_path) == []
    assert len(baseline.stale([], [url], tmp_path)) == 1


BOOK = {"method": "BOOK", "path": "/room", "errors": ["taken", {"name": "closed"}, 7]}
FIND = {"method": "FIND", "path": "/room"}
WRONG = Diagnostic("P302", "error", "the path is wrong", Location("a", 3, 1), "/endpoints/0/path")


@rows(
    "pointer, stable",
    ("", ""),
    ("/endpoints/0/path", "/endpoints/[BOOK /room]/path"),
    ("/endpoints/1", "/endpoints/[FIND /room]"),
    ("/endpoints/0/errors/0", "/endpoints/[BOOK /room]/errors/[taken]"),
    ("/endpoints/0/errors/1/name", "/endpoints/[BOOK /room]/errors/[closed]/name"),
    ("/endpoints/0/errors/2", "/endpoints/[BOOK /room]/errors/2"),
    ("/endpoints/9/path", "/endpoints/9/path"),
    ("/a~1b/0", "/a~1b/[x]"),
    ("/nowhere/0", "/nowhere/0"),
)
def test_an_item_is_named_by_what_it_is(pointer: str, stable: str) -> None:
    assert stable_pointer(pointer, {"endpoints": [BOOK, FIND], "a/b": ["x"]}) == stable


def test_moved_lines_a_new_order_and_a_place_in_the_message_keep_the_name() -> None:
    before = fingerprint(WRONG, "a.agis", {"endpoints": [BOOK, FIND]})
    moved = replace(WRONG, location=Location("a", 40, 9), pointer="/endpoints/1/path", severity="warning")
    assert fingerprint(moved, "a.agis", {"endpoints": [FIND, BOOK]}) == before
    one = replace(WRONG, message="declared twice (b.toml:3:1)")
    other = replace(WRONG, message="declared  twice (b.toml:17:1)")
    assert fingerprint(one, "a", None) == fingerprint(other, "a", None)


@pytest.mark.parametrize("change", [{"rule": "P303"}, {"message": "other"}, {"pointer": "/endpoints/1/path"}], ids=str)
def test_another_finding_has_another_name(change: dict[str, Any]) -> None:
    data = {"endpoints": [BOOK, FIND]}
    assert fingerprint(replace(WRONG, **change), "a", data) != fingerprint(WRONG, "a", data)
    assert fingerprint(WRONG, "b", data) != fingerprint(WRONG, "a", data)


@given(st.text(), st.text(), st.recursive(st.none() | st.text(), st.lists))
def test_any_pointer_and_message_has_a_name(pointer: str, message: str, data: Any) -> None:
    finding = Diagnostic("P302", "error", message, None, pointer)
    assert len(fingerprint(finding, message, data)) == 20

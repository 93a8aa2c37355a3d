"""Findings that were known before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bespeak.checks.lint.baseline import Baseline, read_baseline
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding
from bespeak.text.source.tree import Location


def finding(name: str, rule: str = "P302") -> Finding:
    return Finding(Diagnostic(rule, "error", f"wrong {name}", Location("a.agis", 1), "/path"), name)


def entry(file: str) -> dict[str, str]:
    return {"rule": "P302", "file": file, "pointer": "/path", "message": "wrong"}


def test_finding_in_the_baseline_is_not_new(tmp_path: Path) -> None:
    baseline = Baseline(tmp_path / "b.json", {"one": entry("a.agis")})
    assert baseline.split([finding("one"), finding("two")]) == ([finding("two")], {"one"})


def test_some_rules_are_always_new(tmp_path: Path) -> None:
    baseline = Baseline(tmp_path / "b.json", {"one": entry("a.agis")})
    assert baseline.split([finding("one")], lambda rule: rule == "P302") == ([finding("one")], set())


def test_unmatched_entry_of_a_checked_or_missing_file_is_stale(tmp_path: Path) -> None:
    (tmp_path / "other.agis").touch()
    entries = {"here": entry("a.agis"), "fixed": entry("a.agis"), "gone": entry("b.agis"), "kept": entry("other.agis")}
    baseline = Baseline(tmp_path / "b.json", entries)
    stale = baseline.stale({"here"}, {"a.agis"}, tmp_path)
    assert [one.pointer for one in stale] == ["/findings/fixed", "/findings/gone"]
    assert {one.rule for one in stale} == {"D193"}


def test_writing_keeps_entries_of_unchecked_files(tmp_path: Path) -> None:
    (tmp_path / "other.agis").touch()
    path = tmp_path / "b.json"
    Baseline(path, {"old": entry("a.agis"), "kept": entry("other.agis"), "gone": entry("b.agis")}).write()
    read_baseline(path).merged([(finding("new"), "a.agis")], {"a.agis"}, tmp_path).write()
    assert read_baseline(path).entries.keys() == {"kept", "new"}


def test_the_file_is_sorted_and_says_what_it_hides(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
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


def test_unreadable_or_unwritable_baseline_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_baseline(tmp_path)
    with pytest.raises(ConfigError, match="cannot be written"):
        Baseline(tmp_path, {}).write()


def test_entries_of_an_address_stay_until_it_is_checked_again(tmp_path: Path) -> None:
    url = "https://flights.test/.well-known/ai"
    baseline = Baseline(tmp_path / "b.json", {"f1": entry(url)})
    assert baseline.stale([], ["a.toml"], tmp_path) == []
    assert len(baseline.stale([], [url], tmp_path)) == 1

"""The settings for lint: where they stand, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.checks.lint.config import (
    Config,
    Configs,
    Judge,
    PathIgnore,
    enabled,
    matches_pattern,
    read_config,
    relative_to,
    selected,
    severities,
    unknown_selector,
)
from bespeak.documents.deployment.server_toml import parse_server
from bespeak.errors import ConfigError, ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule

EVERY_KEY = """
select = ["S", "P3"]
extend-select = ["unused-ignore"]
ignore = ["S450"]
exclude = ["legacy/**"]
conformance-level = 2
allowed-verbs = ["FLARE"]
allowed-segments = ["book"]
catalog = "1.0.0"
fail-on = "warning"
require-reason = true
severity = { S401 = "info" }
per-path-ignores = { "old/*" = ["P302"], "x.agis#/endpoints/0" = ["S"] }
"""


def config_of(folder: Path, text: str, name: str = "bespeak.toml") -> Config | None:
    path = folder / name
    path.write_text(text)
    return read_config(path)


def wrong(folder: Path, text: str) -> str:
    with pytest.raises(ContractError) as error:
        config_of(folder, f"[lint]\n{text}\n")
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "table"), [("bespeak.toml", "[lint]"), ("pyproject.toml", "[tool.bespeak.lint]"), ("ci.toml", "[lint]")]
)
def test_every_key_is_read(name: str, table: str, tmp_path: Path) -> None:
    config = config_of(tmp_path, f"{table}\n{EVERY_KEY}", name)
    assert config == Config(
        file=tmp_path / name,
        base=tmp_path,
        select=("S", "P3"),
        extend_select=("unused-ignore",),
        ignore=("S450",),
        severity={"S401": "info"},
        per_path_ignores=(PathIgnore("old/*", "", ("P302",)), PathIgnore("x.agis", "/endpoints/0", ("S",))),
        exclude=("legacy/**",),
        conformance_level=2,
        allowed_verbs=("FLARE",),
        allowed_segments=("book",),
        catalog="1.0.0",
        fail_on="warning",
        require_reason=True,
    )


def test_file_may_have_no_settings_or_graver_rules_and_must_be_toml(tmp_path: Path) -> None:
    assert config_of(tmp_path, "[server]\n") is None
    assert config_of(tmp_path, "[tool.ruff.lint]\n", "pyproject.toml") is None
    assert read_config(tmp_path / "none.toml") is None
    assert config_of(tmp_path, '[lint]\nconformance = true\nseverity = { P308 = "error" }\n') is not None
    with pytest.raises(ContractError, match="cannot be read"):
        config_of(tmp_path, "[lint\n")


@rows(
    "text, said",
    ('select = ["P3O2"]', "there is no rule 'P3O2'; did you mean P302"),
    ('ignore = ["method-names-in-path"]', "did you mean method-name-in-path"),
    ('extend-select = ["ZZZ"]', "there is no rule 'ZZZ'"),
    ('severity = { P999 = "info" }', "there is no rule 'P999'"),
    ('severity = { P302 = "off" }', "must be one of error, warning, info"),
    ('per-path-ignores = { "*" = ["P999"] }', "there is no rule 'P999'"),
    ('fail-on = "never"', "must be one of error, warning, info"),
    ("conformance-level = 3", "must be one of 1, 2; got 3"),
    ('select = "S"', "not an array of strings"),
    ("require-reason = 1", "not true or false"),
    ('extend_select = ["S"]', "`extend_select` is not a known key"),
    ('extend_select = ["S"]', "Did you mean `extend-select`?"),
    ('conformance = true\nseverity = { P302 = "warning" }', "P302 is a MUST of AGTP-API 5.1"),
)
def test_invalid_value_is_explained(text: str, said: str, tmp_path: Path) -> None:
    assert said in wrong(tmp_path, text)


def test_the_nearest_settings_win_and_bespeak_toml_before_pyproject(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    config_of(tmp_path, '[tool.bespeak.lint]\nignore = ["S"]\n', "pyproject.toml")
    config_of(tmp_path / "a", '[tool.bespeak.lint]\nignore = ["P"]\n', "pyproject.toml")
    configs = Configs(tmp_path)
    assert configs.run.ignore == ("S",)
    assert configs.of(inner).ignore == ("P",)
    config_of(tmp_path / "a", '[lint]\nignore = ["M"]\n')
    assert Configs(tmp_path).of(inner).ignore == ("M",)


def test_a_file_without_settings_above_it_takes_those_of_the_run(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    config_of(here, '[lint]\nignore = ["S"]\n')
    assert Configs(here).of(elsewhere).ignore == ("S",)


def test_settings_can_be_given_or_left_out(tmp_path: Path) -> None:
    config_of(tmp_path, '[lint]\nignore = ["S"]\n')
    config_of(tmp_path, '[lint]\nignore = ["P"]\n', "other.toml")
    assert Configs(tmp_path, file=tmp_path / "other.toml").of(tmp_path).ignore == ("P",)
    assert Configs(tmp_path, isolated=True).of(tmp_path).ignore == ()
    config_of(tmp_path, "[server]\n", "none.toml")
    with pytest.raises(ConfigError, match="no lint settings"):
        Configs(tmp_path, file=tmp_path / "none.toml")


def test_exclude_patterns_and_names_of_files_are_relative_to_the_settings(tmp_path: Path) -> None:
    config = Config(base=tmp_path, exclude=("legacy", "a/*.toml"))
    assert config.excludes(tmp_path / "x" / "legacy")
    assert config.excludes(tmp_path / "a" / "b.toml")
    assert not config.excludes(tmp_path / "a" / "b.agis")
    assert relative_to(tmp_path / "a" / "b", tmp_path) == "a/b"
    assert relative_to(tmp_path, tmp_path / "a") == tmp_path.as_posix()


def test_a_server_does_not_mind_the_settings_for_lint() -> None:
    _, findings = parse_server(
        '[server]\nserver_id = "a"\noperator = "b"\ncontact = "c"\n[lint]\nx = 1\n', "bespeak.toml"
    )
    assert findings == []


def test_meaningless_selector_is_explained_and_the_most_exact_severity_holds() -> None:
    assert unknown_selector("S4") == ""
    assert unknown_selector("qqqqq") == "there is no rule 'qqqqq'; `bespeak explain` lists them"
    assert severities(RULES, {"S": "info", "contradiction": "error"}) == {"S401": "info", "S450": "error"}
    assert severities(RULES, {}) == {}


LEAK = Diagnostic("P302", "error", "wrong", None, "/endpoints/0/path")
ODD = Diagnostic("P308", "warning", "odd", None, "/endpoints/0/path")


def test_rules_are_on_unless_not_selected_or_ignored_and_a_severity_is_changed() -> None:
    assert Judge(Config()).is_on("P302")
    assert not Judge(Config(ignore=("P3",))).is_on("P302")
    assert not Judge(Config(select=("S",))).is_on("P302")
    assert Judge(Config(select=("S",), extend_select=("P302",))).is_on("P302")
    judge = Judge(Config(severity={"P302": "info"}))
    assert judge.finding(LEAK, "a.toml").diagnostic.severity == "info"
    assert judge.finding(ODD, "a.toml").diagnostic == ODD


def test_unreadable_file_and_unknown_rule_are_always_shown() -> None:
    judge = Judge(Config(select=("S",), ignore=("ALL",), severity={"D102": "info"}))
    assert judge.is_on("D101")
    assert judge.is_on("D102")
    assert judge.is_on("Z999")
    assert judge.stands("D102")
    assert judge.severity("D102") is None


@rows(
    "pattern, pointer, selectors, ignored",
    ("old/*", "", ("P302",), True),
    ("old/*", "", ("P",), True),
    ("old/*", "", ("S",), False),
    ("new/*", "", ("P302",), False),
    ("*.agis", "/endpoints/0", ("P302",), True),
    ("*.agis", "/endpoints/0/path", ("P302",), True),
    ("*.agis", "/endpoints/1", ("P302",), False),
    ("*.agis", "/endpoints/0/pa", ("P302",), False),
)
def test_rules_are_off_for_files_and_parts_of_them(
    pattern: str, pointer: str, selectors: tuple[str, ...], ignored: bool
) -> None:
    judge = Judge(Config(per_path_ignores=(PathIgnore(pattern, pointer, selectors),)))
    assert judge.is_ignored(LEAK, "old/rooms.agis") is ignored


def test_in_a_conformance_run_no_must_is_hidden_or_lowered() -> None:
    everything = (PathIgnore("**", "", ("ALL",)),)
    config = Config(conformance=True, ignore=("ALL",), severity={"P": "info"}, per_path_ignores=everything)
    judge = Judge(config)
    assert judge.is_on("P302")
    assert judge.stands("P302")
    assert judge.finding(LEAK, "a.toml").diagnostic == LEAK
    assert not judge.is_ignored(LEAK, "a")
    assert not judge.is_on("P308")
    assert not judge.stands("P308")


@rows(
    "pattern, path, expected",
    ("*.agis", "rooms.agis", True),
    ("*.agis", "deep/down/rooms.agis", True),
    ("legacy", "a/legacy/b/c.toml", True),
    ("legacy/", "legacy/c.toml", True),
    ("legacy/*.toml", "legacy/c.toml", True),
    ("legacy/**/*.toml", "legacy/c.toml", True),
    ("legacy/**/*.toml", "legacy/a/b/c.toml", True),
    ("**/old/*", "a/b/old/c", True),
    ("./a/b", "a/b", True),
    ("a?c.[jt]s", "abc.js", True),
    ("**", "anything/at/all", True),
    ("*.agis", "rooms.toml", False),
    ("legacy/*.toml", "a/legacy/c.toml", False),
    ("legacy/*.toml", "legacy/a/c.toml", False),
    *((pattern, path, False) for pattern, path in (("a/b", "a"), ("a", "ab"), ("A", "a"))),
)
def test_pattern_matches_files_and_folders_as_in_ignore_files(pattern: str, path: str, expected: bool) -> None:
    assert matches_pattern(pattern, path) is expected


def test_a_pattern_of_many_stars_does_not_hang_a_run() -> None:
    assert not matches_pattern("*a" * 30 + "/**" * 30 + "/x", "a" * 200 + "/b" * 200)


S401 = Rule("S401", "missing-text", "MUST", "AGTP-API 6.2")
S450 = Rule("S450", "contradiction", "SHOULD", "AGIS 9.1")
P302 = Rule("P302", "method-name-in-path", "MUST", "AGTP-API 5.1")
RULES = {rule.id: rule for rule in (S401, S450, P302)}


@rows(
    "select, ignore, on",
    (["ALL"], [], {"S401", "S450", "P302"}),
    (["S"], [], {"S401", "S450"}),
    (["S4", "P302"], [], {"S401", "S450", "P302"}),
    (["contradiction"], [], {"S450"}),
    (["ALL"], ["S"], {"P302"}),
    (["ALL", "S450"], ["S4"], {"S450", "P302"}),
    (["S450"], ["contradiction"], set()),
    (["S4"], ["S4"], set()),
    (["ALL"], ["ALL"], set()),
    ([], [], set()),
)
def test_the_most_exact_selector_decides_and_of_two_equals_ignore(
    select: list[str], ignore: list[str], on: set[str]
) -> None:
    assert enabled(RULES, select, ignore) == on


@pytest.mark.parametrize("selector", ["s401", "S4010", "S-", "", "text", "X", "missing"])
def test_selector_without_a_match_is_reported(selector: str) -> None:
    assert selected(selector, RULES) == set()

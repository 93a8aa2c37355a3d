"""The settings for lint: where they stand, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.checks.lint.config import Config, Configs, PathIgnore, read_config, relative_to, unknown_selector
from bespeak.documents.deployment.server_toml import parse_server
from bespeak.errors import ConfigError, ContractError

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
    ("name", "table"),
    [("bespeak.toml", "[lint]"), ("pyproject.toml", "[tool.bespeak.lint]"), ("ci.toml", "[lint]")],
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


def test_a_file_without_the_table_has_no_settings(tmp_path: Path) -> None:
    assert config_of(tmp_path, "[server]\n") is None
    assert config_of(tmp_path, "[tool.ruff.lint]\n", "pyproject.toml") is None
    assert read_config(tmp_path / "none.toml") is None


def test_unknown_key_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    assert "`extend_select` is not a known key" in wrong(tmp_path, 'extend_select = ["S"]')
    assert "Did you mean `extend-select`?" in wrong(tmp_path, 'extend_select = ["S"]')


@pytest.mark.parametrize(
    ("text", "said"),
    [
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
    ],
)
def test_invalid_value_is_explained(text: str, said: str, tmp_path: Path) -> None:
    assert said in wrong(tmp_path, text)


def test_a_must_cannot_be_lowered_in_a_conformance_run(tmp_path: Path) -> None:
    assert "P302 is a MUST of AGTP-API 5.1" in wrong(tmp_path, 'conformance = true\nseverity = { P302 = "warning" }')
    assert config_of(tmp_path, '[lint]\nconformance = true\nseverity = { P308 = "error" }\n') is not None


def test_file_that_is_not_toml_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be read"):
        config_of(tmp_path, "[lint\n")


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


def test_exclude_patterns_are_relative_to_the_settings(tmp_path: Path) -> None:
    config = Config(base=tmp_path, exclude=("legacy", "a/*.toml"))
    assert config.excludes(tmp_path / "x" / "legacy")
    assert config.excludes(tmp_path / "a" / "b.toml")
    assert not config.excludes(tmp_path / "a" / "b.agis")


def test_a_server_does_not_mind_the_settings_for_lint() -> None:
    _, findings = parse_server(
        '[server]\nserver_id = "a"\noperator = "b"\ncontact = "c"\n[lint]\nx = 1\n', "bespeak.toml"
    )
    assert findings == []


def test_names_of_files_are_relative_where_they_can_be(tmp_path: Path) -> None:
    assert relative_to(tmp_path / "a" / "b", tmp_path) == "a/b"
    assert relative_to(tmp_path, tmp_path / "a") == tmp_path.as_posix()


def test_a_selector_is_explained_when_it_means_nothing() -> None:
    assert unknown_selector("S4") == ""
    assert unknown_selector("qqqqq") == "there is no rule 'qqqqq'; `bespeak explain` lists them"

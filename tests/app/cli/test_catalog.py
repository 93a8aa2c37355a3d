"""Test `bespeak catalog`: text and JSON output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bespeak.app.cli.catalog import catalog
from bespeak.contract.catalog.document import load_bundled


def run(*arguments: object) -> Result:
    return CliRunner().invoke(catalog, [str(argument) for argument in arguments])


def test_list_gives_one_line_for_each_verb_in_alphabetical_order() -> None:
    result = run("list")
    assert result.exit_code == 0
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert names == sorted(load_bundled().names)


def test_list_can_show_an_older_version() -> None:
    assert len(run("list", "--version", "1.0.0").stdout.splitlines()) == 425


def test_list_can_show_one_category() -> None:
    lines = run("list", "--category", "creation", "--version", "1.0.0").stdout.splitlines()
    assert len(lines) == 36
    assert all("creation" in line for line in lines)


def test_list_marks_deprecated_verbs() -> None:
    (line,) = (line for line in run("list").stdout.splitlines() if line.startswith("AUDITLOG"))
    assert line.endswith("(deprecated; successor=LOG; removed_in=2.0.0)")


def test_list_as_json_is_one_document() -> None:
    document = json.loads(run("list", "--category", "notification", "--json").stdout)
    assert document["version"] == "1.1.0"
    assert {"SEND", "NOTIFY"} <= {verb["name"] for verb in document["verbs"]}


def test_an_unknown_category_is_wrong_usage_and_names_the_known_ones() -> None:
    result = run("list", "--category", "poetry")
    assert result.exit_code == 2
    assert "domain_spanning" in result.stderr


def test_output_in_a_pipe_is_plain_and_never_cut() -> None:
    output = run("list").stdout
    assert output.isascii()
    assert "\x1b" not in output
    assert max(len(line) for line in output.splitlines()) > 100


@pytest.mark.parametrize("name", ["DELEGATE", "delegate"])
def test_show_describes_a_verb(name: str) -> None:
    result = run("show", name)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "DELEGATE  Hand a task to another agent with bounded authority",
        "categories     mechanics",
        "catalog        1.1.0",
        "floor method   supported by every server",
    ]


def test_show_describes_a_deprecated_verb() -> None:
    assert run("show", "AUDITLOG").stdout.splitlines()[-3:] == [
        "deprecated in  1.1.0",
        "removed in     2.0.0",
        "successor      LOG",
    ]


def test_show_as_json() -> None:
    assert json.loads(run("show", "AUDITLOG", "--json").stdout) == {
        "version": "1.1.0",
        "name": "AUDITLOG",
        "categories": ["mechanics"],
        "description": "Add an entry to the audit trail",
        "deprecated_in": "1.1.0",
        "removed_in": "2.0.0",
        "successor": "LOG",
        "embedded": False,
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["RESERV"], "'RESERV' is not in catalog 1.1.0. Did you mean RESERVE"),
        (["XQZ"], "'XQZ' is not in catalog 1.1.0. See `bespeak catalog list`."),
        (["LOG", "--version", "1.0.0"], "'LOG' is not in catalog 1.0.0. It is in 1.1.0."),
        (["get"], "GET is an HTTP verb, which servers accept only if they opt in. Use FETCH."),
        (["BOOK" * 5_000], "BOOKBOOK' is not in catalog 1.1.0."),
        (["\x1b[31mRED"], "'\\x1b[31mRED' is not in catalog 1.1.0."),
    ],
)
def test_unknown_verb_gets_a_suggestion(arguments: list[str], told: str) -> None:
    result = run("show", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert told in result.stderr
    assert len(result.stderr) < 200


@pytest.mark.parametrize("command", [["list"], ["show", "BOOK"]])
def test_unreadable_catalog_exits_with_two(command: list[str], tmp_path: Path) -> None:
    result = run(*command, "--version", tmp_path / "none.json")
    assert result.exit_code == 2
    assert "none.json" in result.stderr


def test_custom_catalog_document_can_be_listed(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    document = json.loads(
        (Path(__file__).parents[3] / "src/bespeak/contract/catalog/data/methods-1.0.0.json").read_text()
    )
    document["version"] = "1.0.7"
    document["verbs"]["BOOK"]["description"] = "Ring\x07 the bell"
    own.write_text(json.dumps(document))
    assert run("show", "BOOK", "--version", own).stdout.splitlines()[:3] == [
        "BOOK  Ring\\x07 the bell",
        "categories     transaction",
        "catalog        1.0.7",
    ]


def test_diff_compares_bundled_versions() -> None:
    result = run("diff", "1.0.0", "1.1.0")
    assert result.exit_code == 0
    assert result.stdout.startswith("Catalog 1.0.0 -> 1.1.0\n\nAdded (13)\n")

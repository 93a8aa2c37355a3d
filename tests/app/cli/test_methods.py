"""`bespeak methods` tells what the standard methods take and return."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from bespeak.app.cli.methods import methods


def run(*arguments: str) -> Result:
    return CliRunner().invoke(methods, arguments)


def test_list_names_the_methods_of_a_category() -> None:
    names = [line.split()[0] for line in run("list", "--category", "transact").stdout.splitlines()]
    assert "LOG" in names
    assert json.loads(run("list", "--json").stdout)[0]["category"] == "transact"


def test_resume_is_listed_with_the_other_methods() -> None:
    names = [line.split()[0] for line in run("list", "--category", "orchestrate").stdout.splitlines()]
    assert {"PAUSE", "RESUME", "RETRY"} <= set(names)


def test_show_tells_parameters_results_and_errors() -> None:
    text = run("show", "log").stdout
    assert "event_type           required  string" in text
    assert "info | warning | error | critical" in text
    assert "invalid-data         400" in text


def test_an_unknown_method_is_a_usage_error() -> None:
    result = run("show", "nap")
    assert result.exit_code == 2
    assert "'nap' is not a valid standard method" in result.stderr

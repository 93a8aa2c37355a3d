"""Test `bespeak schema`."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bespeak.app.cli.schema import schema
from bespeak.documents.schemas import SCHEMAS, load_schema


def test_schema_is_printed_unchanged() -> None:
    result = CliRunner().invoke(schema, ["agis"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == load_schema("agis")


def test_without_a_name_the_schemas_are_listed() -> None:
    result = CliRunner().invoke(schema, [])
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(SCHEMAS)


def test_an_unknown_name_is_wrong_usage() -> None:
    result = CliRunner().invoke(schema, ["poetry"])
    assert result.exit_code == 2
    assert "agis" in result.stderr

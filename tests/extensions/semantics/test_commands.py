"""The group `bespeak semantic` loads a command only when it is used."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from bespeak.app.cli.main import bespeak
from bespeak.extensions.semantics.commands import semantic


def test_every_listed_command_exists_and_an_unknown_one_is_a_usage_error() -> None:
    context = click.Context(semantic)
    assert all(semantic.get_command(context, name) is not None for name in semantic.list_commands(context))
    assert CliRunner().invoke(bespeak, ["semantic", "frob"]).exit_code == 2


@pytest.mark.parametrize("args", [["semantic", "--help"], ["semantic", "publish", "--help"]])
def test_help_is_shown(args: list[str]) -> None:
    assert CliRunner().invoke(bespeak, args).exit_code == 0

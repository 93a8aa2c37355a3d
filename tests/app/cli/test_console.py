"""`bespeak console`: it serves this machine only, and says how others are let in."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bespeak.app.cli.serve import console


@pytest.mark.parametrize("option", ["--http", "--agtp"])
def test_an_address_that_others_can_reach_is_refused_with_the_way_that_lets_them_in(option: str) -> None:
    result = CliRunner().invoke(console, ["rooms", option, "0.0.0.0:8099"])
    assert result.exit_code == 2
    assert "0.0.0.0:8099 is not an address of this machine only" in result.output
    assert "[console] enabled" in result.output

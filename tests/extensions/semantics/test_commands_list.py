"""What `bespeak semantic list` and `show` print is in test_semantic_register.py; here is what they refuse."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bespeak.app.cli.main import bespeak
from bespeak.errors import ConfigError


def test_store_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    place = tmp_path / "missing.db"
    result = CliRunner().invoke(bespeak, ["semantic", "list", "--store", str(place)])
    assert isinstance(result.exception, ConfigError)
    assert not place.exists()

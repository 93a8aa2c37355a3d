"""`bespeak semantic publish`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bespeak.app.cli.main import bespeak
from bespeak.documents.ontology.publication import publish_core
from bespeak.errors import ConfigError


def test_documents_are_written_readable_for_all(tmp_path: Path) -> None:
    result = CliRunner().invoke(bespeak, ["semantic", "publish", "-o", str(tmp_path / "new" / "public")])
    assert result.exit_code == 0, result.output
    assert {path.name: path.read_text() for path in (tmp_path / "new" / "public").iterdir()} == publish_core()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new" / "public").iterdir()} == {0o644}


def test_base_is_configurable_and_checked(tmp_path: Path) -> None:
    run = CliRunner().invoke
    result = run(bespeak, ["semantic", "publish", "-o", str(tmp_path), "--base", "https://acme.example/m/"])
    assert result.exit_code == 0
    assert "https://acme.example/m/ioa/semantic#" in (tmp_path / "context.jsonld").read_text()
    for base in ("acme", "https://acme.example/m", "https://acme.example/\x1b[2J/"):
        result = run(bespeak, ["semantic", "publish", "-o", str(tmp_path), "--base", base])
        assert isinstance(result.exception, ConfigError)
        assert str(result.exception).startswith("the base must be an absolute IRI that ends in '/'")


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(bespeak, ["semantic", "publish", "-o", str(tmp_path / "file" / "x")])
    assert isinstance(result.exception, ConfigError)
    assert "cannot create the folder" in str(result.exception)

"""AGIS document arguments: used if valid, refused with findings if not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.documents.agis_documents import booking

from bespeak.app.cli.document_source import open_agis_file
from bespeak.app.cli.main import CommandFailedError
from bespeak.documents.agis.canonical import write_json, write_yaml


@pytest.mark.parametrize("write", [write_yaml, write_json])
def test_valid_document_gives_a_service(tmp_path: Path, write: Callable[[dict[str, object]], str]) -> None:
    path = tmp_path / "menu.agis"
    path.write_text(write(booking()))
    assert [str(endpoint) for endpoint in open_agis_file(path).endpoints] == ["BOOK /room"]


def test_document_with_errors_is_refused_with_its_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = booking()
    del data["endpoints"][0]["method"]
    path = tmp_path / "menu.agis"
    path.write_text(write_yaml(data))
    with pytest.raises(CommandFailedError, match="has errors; fix them first"):
        open_agis_file(path)
    assert "error[D120] `method` is missing" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["agis: [", "- a", "", None])
def test_file_that_is_not_a_document_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "menu.agis"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CommandFailedError):
        open_agis_file(path)

"""`bespeak export agis`: any service as a document, live or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.documents.agis_documents import booking
from tests.process import HOTEL, serving

from bespeak.cli.export import export
from bespeak.cli.main import RefusedError
from bespeak.documents.agis_format import parse_agis
from bespeak.documents.agis_structure import check_structure
from bespeak.documents.agis_text import write_yaml
from bespeak.errors import ConfigError
from bespeak.source.tree import Tree


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(export, ["agis", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def document(text: str) -> Any:
    tree = parse_agis(text, "out.agis")
    assert isinstance(tree, Tree), tree
    assert {finding.rule for finding in check_structure(tree)} <= {"D127"}
    return tree.data


def test_a_deployment_is_written_as_yaml_or_json() -> None:
    yaml_text, json_text = run(HOTEL).stdout, run(HOTEL, "--to", "json").stdout
    assert yaml_text.startswith('agis: "1.0"\n')
    assert json_text.startswith("{")
    data = document(yaml_text)
    assert data == document(json_text)
    assert data["vocabulary"]["declared_verbs"] == ["BOOK", "CANCEL", "FETCH", "QUERY", "AUDITLOG"]
    assert data["endpoints"][0]["errors"][0]["name"] == "room_unavailable"


def test_a_live_service_gives_the_same_contract() -> None:
    with serving(HOTEL) as served:
        live = document(run(served.uri).stdout)
    here = document(run(HOTEL).stdout)
    assert live["agtp"] == served.uri
    assert {entry["path"] for entry in live["endpoints"]} == {entry["path"] for entry in here["endpoints"]}
    by_name = {(entry["method"], entry["path"]): entry for entry in live["endpoints"]}
    for entry in here["endpoints"]:
        other = by_name[entry["method"], entry["path"]]
        assert {key: other[key] for key in ("semantic", "input", "output")} == {
            key: entry[key] for key in ("semantic", "input", "output")
        }


def test_a_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "hotel.agis"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        run(HOTEL, "-o", path)
    assert path.read_text() == "mine"
    assert run(HOTEL, "-o", path, "--force").stdout == ""
    assert document(path.read_text())["operator"] == "Harbour Hotel"


def test_a_service_that_offers_nothing_has_no_document(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "a@a.example"\n'
    )
    with pytest.raises(RefusedError, match="no endpoints"):
        run(tmp_path)


def test_a_document_nothing_is_bound_to_is_exported_too(tmp_path: Path) -> None:
    path = tmp_path / "menu.agis"
    path.write_text(write_yaml(booking()))
    data = document(run(path, "--to", "json").stdout)
    assert data["service"] == "Acme Rooms"
    assert data["endpoints"][0]["semantic"]["impact_tier"] == "irreversible"  # what was read is said

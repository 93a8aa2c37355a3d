"""Test `bespeak export` with local and live services."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from click.testing import CliRunner, Result
from tests.documents.agis_documents import booking
from tests.process import HOTEL, serving

import bespeak
from bespeak.app.cli.export import export
from bespeak.app.cli.main import CommandFailedError
from bespeak.documents.agis.format import parse_agis
from bespeak.documents.agis.structure import check_structure
from bespeak.documents.agis.text import write_yaml
from bespeak.errors import ConfigError
from bespeak.text.source.tree import Tree


def run(*arguments: object, kind: str = "agis") -> Result:
    result = CliRunner().invoke(export, [kind, *map(str, arguments)])
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


@pytest.mark.process
def test_live_service_exports_the_same_contract() -> None:
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


def test_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "hotel.agis"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        run(HOTEL, "-o", path)
    assert path.read_text() == "mine"
    assert run(HOTEL, "-o", path, "--force").stdout == ""
    assert document(path.read_text())["operator"] == "Harbour Hotel"


def test_service_without_endpoints_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "a@a.example"\n'
    )
    with pytest.raises(CommandFailedError, match="no endpoints"):
        run(tmp_path)


def test_document_without_handlers_is_exported(tmp_path: Path) -> None:
    path = tmp_path / "menu.agis"
    path.write_text(write_yaml(booking()))
    data = document(run(path, "--to", "json").stdout)
    assert data["service"] == "Acme Rooms"
    assert data["endpoints"][0]["semantic"]["impact_tier"] == "irreversible"  # what was read is said


async def served(target: object, path: str) -> httpx.Response:
    """Fetch what a service serves at a web path."""
    service = bespeak.asgi(str(target))
    async with service.running(), httpx.AsyncClient(transport=httpx.ASGITransport(service)) as http:
        return await http.get(f"http://hotel.example{path}")


@pytest.mark.anyio
async def test_openapi_document_equals_the_served_one() -> None:
    text = run(HOTEL, kind="openapi").stdout
    assert json.loads(text) == (await served(HOTEL, "/openapi.json")).json()
    assert yaml.safe_load(run(HOTEL, "--to", "yaml", kind="openapi").stdout) == json.loads(text)


@pytest.mark.anyio
async def test_llms_text_equals_the_served_one() -> None:
    assert run(HOTEL, kind="llms").stdout == (await served(HOTEL, "/llms.txt")).text


@pytest.mark.anyio
async def test_discovery_document_equals_the_served_one() -> None:
    here, there = json.loads(run(HOTEL, kind="ai").stdout), (await served(HOTEL, "/.well-known/ai")).json()
    assert {**here, "meta": None} == {**there, "meta": None}


@pytest.mark.process
def test_openapi_document_of_a_live_service_has_what_its_manifest_has() -> None:
    with serving(HOTEL) as live:
        found = json.loads(run(live.uri, "--url", "https://rooms.example/", kind="openapi").stdout)
    here = json.loads(run(HOTEL, kind="openapi").stdout)
    assert set(found["paths"]) == set(here["paths"])
    assert found["info"]["version"] == here["info"]["version"]
    assert found["info"]["x-agtp-manifest"] == live.uri
    assert found["servers"] == [{"url": "https://rooms.example"}]
    assert found["components"]["schemas"] == here["components"]["schemas"]
    assert found["components"]["securitySchemes"] == {}
    assert "Agent-ID" not in [parameter["name"] for parameter in parameters(found)]


def parameters(found: Any) -> list[Any]:
    named = {
        reference["$ref"].rpartition("/")[2]
        for item in found["paths"].values()
        for reference in item["post"]["parameters"]
    }
    return [found["components"]["parameters"][name] for name in named]


def test_document_without_handlers_has_web_documents(tmp_path: Path) -> None:
    path = tmp_path / "menu.agis"
    path.write_text(write_yaml(booking()))
    assert json.loads(run(path, kind="openapi").stdout)["info"]["title"] == "Acme Rooms"
    assert run(path, kind="llms").stdout.startswith("# Acme Rooms")


@pytest.mark.parametrize("kind", ["openapi", "ai", "llms"])
def test_service_without_endpoints_has_no_web_documents(tmp_path: Path, kind: str) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "a@a.example"\n'
    )
    with pytest.raises(CommandFailedError, match="no endpoints"):
        run(tmp_path, kind=kind)


def test_a_large_service_is_written_in_parts(tmp_path: Path) -> None:
    document = booking()
    document["endpoints"] = [
        {**document["endpoints"][0], "path": f"/{group}/thing{number}"} for group in "ab" for number in range(60)
    ]
    path = tmp_path / "many.agis"
    path.write_text(write_yaml(document))
    whole = run(path, kind="ai")
    assert "--part" in whole.stderr
    part = json.loads(run(path, "--part", "a", kind="ai").stdout)
    assert len(part["capabilities"]) == 60
    with pytest.raises(ConfigError, match="use one of"):
        run(path, "--part", "c", kind="ai")

"""Test `bespeak import agis`: the folder loads, starts and lists the functions to implement."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.documents.agis_documents import booking
from tests.process import serving

import bespeak
from bespeak.agent.client.errors import ServiceError
from bespeak.app.cli.import_ import import_
from bespeak.app.cli.main import CommandFailedError
from bespeak.contract.service import DataClass, DataManifest, Vocabulary
from bespeak.documents.agis.canonical import parse_agis
from bespeak.documents.agis.document import agis_service, read_agis
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.errors import ConfigError
from bespeak.text.source.tree import Tree

AGENT = "0a3f" * 16


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(import_, ["agis", *map(str, arguments)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def saved(folder: Path, data: dict[str, Any]) -> Path:
    path = folder / "menu.agis"
    path.write_text(json.dumps(data))
    return path


def admission() -> dict[str, Any]:
    data = booking()
    (entry,) = data["endpoints"]
    data["endpoints"] = [entry, {**entry, "method": "ADMIT", "path": "/patient"}]
    data["vocabulary"]["declared_verbs"] = ["BOOK", "ADMIT"]
    return data


def test_the_folder_has_the_endpoints_of_the_document(tmp_path: Path) -> None:
    file = saved(tmp_path, admission())
    result = run(file, "-o", tmp_path / "out")
    assert "2 endpoints" in result.stdout
    assert result.stderr == ""
    deployment, findings = read_deployment(tmp_path / "out")
    assert [str(finding) for finding in findings if finding.severity == "error"] == []
    tree = parse_agis(file.read_text(), "menu.agis")
    assert isinstance(tree, Tree)
    document, _ = read_agis(tree)
    assert document is not None
    expected = {endpoint.key: endpoint for endpoint in agis_service(document).endpoints}
    for endpoint in deployment.endpoints:
        wanted = expected.pop(endpoint.key)
        for name in ("semantic", "description", "errors", "required_scopes", "namespace", "deprecated"):
            assert getattr(endpoint, name) == getattr(wanted, name), name
        assert endpoint.input_schema == {k: v for k, v in wanted.input_schema.items() if k != "$schema"}
        assert endpoint.output_schema == {k: v for k, v in wanted.output_schema.items() if k != "$schema"}
    assert expected == {}
    assert deployment.policies.methods.custom == ("ADMIT",)


@pytest.mark.process
def test_folder_can_be_served_and_placeholders_name_the_function_to_write(tmp_path: Path) -> None:
    run(saved(tmp_path, admission()), "-o", tmp_path / "out")
    with serving(tmp_path / "out", "--strict") as served:
        assert "2 endpoints" in served.announcement
        with (
            bespeak.connect_sync(served.uri, agent_id=AGENT, scopes=["a:b"]) as service,
            pytest.raises(ServiceError) as refused,
        ):
            service.call("ADMIT", "/patient", room_id="12")
    assert refused.value.status == 501
    assert "implement admit_patient() in handlers.py" in refused.value.message


def test_existing_files_are_replaced_only_with_force(tmp_path: Path) -> None:
    file, out = saved(tmp_path, booking()), tmp_path / "out"
    run(file, "-o", out)
    (out / "handlers.py").write_text("mine")
    with pytest.raises(ConfigError, match=r"handlers\.py"):
        run(file, "-o", out)
    assert (out / "handlers.py").read_text() == "mine"
    run(file, "-o", out, "--force")
    assert "book_room" in (out / "handlers.py").read_text()


def test_schema_that_toml_cannot_represent_is_refused_with_its_location(tmp_path: Path) -> None:
    data = booking()
    data["endpoints"][0]["output"] = {"properties": {"a": {"enum": ["x", None]}}}
    with pytest.raises(CommandFailedError, match="null at /properties/a/enum/1"):
        run(saved(tmp_path, data), "-o", tmp_path / "out")


def test_document_texts_are_never_code(tmp_path: Path) -> None:
    data = booking()
    evil = '"""\nimport os\nos.abort()\n"""\\'
    data["service"] = evil
    data["endpoints"][0]["semantic"]["intent"] = evil
    data["endpoints"][0] |= {"path": "/room" + evil, "errors": [evil]}
    run(saved(tmp_path, data), "-o", tmp_path / "out")
    tree = ast.parse((tmp_path / "out" / "handlers.py").read_text())
    assert [type(node).__name__ for node in tree.body] == [
        *("Expr", "ImportFrom", "ImportFrom", "ImportFrom", "FunctionDef", "FunctionDef"),
    ]


def test_service_equals_that_of_the_document(tmp_path: Path) -> None:
    data = booking() | {"operator": "Acme", "contact": "ops@acme.example"}
    data["vocabulary"]["negotiable"] = True
    data["data_manifest"] = {"available_data": [{"class": "rooms", "formats": ["json"]}], "pre_auth_discovery": True}
    run(saved(tmp_path, data), "-o", tmp_path / "out")
    deployment, findings = read_deployment(tmp_path / "out")
    assert findings == []
    identity = deployment.service().identity
    assert (identity.server_id, identity.operator, identity.contact) == (
        "rooms.acme.example",
        "Acme",
        "ops@acme.example",
    )
    assert deployment.service().document_version == "1.0.0"
    assert deployment.service().vocabulary == Vocabulary(domain="hospitality", negotiable=True)
    assert deployment.service().data_manifest == DataManifest(
        available_data=(DataClass(name="rooms", formats=("json",)),), pre_auth_discovery=True
    )


def test_file_names_cannot_control_the_terminal(tmp_path: Path) -> None:
    data = booking() | {"schemas": {"Room": {"type": "object"}}}
    document = saved(tmp_path, data).rename(tmp_path / "a\x1b[2J.agis")
    result = run(document, "-o", tmp_path / "b\x07")
    assert "\x07" not in result.output
    assert "\x1b" not in result.output
    assert "a\\x1b[2J.agis" in result.output

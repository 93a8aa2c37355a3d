"""Test `bespeak export` with local and live services."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from click.testing import CliRunner, Result
from tests.cases import rows
from tests.documents.agis_documents import booking
from tests.process import HOTEL, serving

import bespeak
from bespeak.app.cli.discover import discover
from bespeak.app.cli.export import export, open_exported
from bespeak.documents.agis.canonical import parse_agis, write_yaml
from bespeak.documents.agis.document import check_structure
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.commands import semantic
from bespeak.state.identity.settings import AuthSettings
from bespeak.terminal import CommandFailedError
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


def test_document_without_handlers_is_exported(tmp_path: Path) -> None:
    path = tmp_path / "menu.agis"
    path.write_text(write_yaml(booking()))
    data = document(run(path, "--to", "json").stdout)
    assert data["service"] == "Acme Rooms"
    assert data["endpoints"][0]["semantic"]["impact_tier"] == "irreversible"  # what was read is said
    assert json.loads(run(path, kind="openapi").stdout)["info"]["title"] == "Acme Rooms"
    assert run(path, kind="llms").stdout.startswith("# Acme Rooms")


async def served(target: object, path: str) -> httpx.Response:
    service = bespeak.asgi(str(target))
    async with service.running(), httpx.AsyncClient(transport=httpx.ASGITransport(service)) as http:
        return await http.get(f"http://hotel.example{path}")


@pytest.mark.anyio
async def test_exported_documents_equal_the_served_ones() -> None:
    text = run(HOTEL, kind="openapi").stdout
    assert json.loads(text) == (await served(HOTEL, "/openapi.json")).json()
    assert yaml.safe_load(run(HOTEL, "--to", "yaml", kind="openapi").stdout) == json.loads(text)
    assert run(HOTEL, kind="llms").stdout == (await served(HOTEL, "/llms.txt")).text
    here, there = json.loads(run(HOTEL, kind="ai").stdout), (await served(HOTEL, "/.well-known/ai")).json()
    assert {**here, "meta": None} == {**there, "meta": None}


def test_capabilities_are_exported_and_pass_the_own_validation(tmp_path: Path) -> None:
    path = tmp_path / "hotel.jsonld"
    run(HOTEL, "-o", str(path), kind="jsonld")
    assert "own:capability/book_room" in {node["id"] for node in json.loads(path.read_text())["@graph"]}
    validated = CliRunner().invoke(semantic, ["validate", str(path)])
    assert validated.exit_code == 0, validated.output


@pytest.mark.process
def test_openapi_document_of_a_live_service_has_what_its_manifest_has() -> None:
    with serving(HOTEL) as live:
        found = json.loads(run(live.uri, "--url", "https://rooms.example/", kind="openapi").stdout)
    here = json.loads(run(HOTEL, kind="openapi").stdout)
    assert set(found["paths"]) == set(here["paths"])
    assert (found["info"]["version"], found["info"]["x-agtp-manifest"]) == (here["info"]["version"], live.uri)
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


@pytest.mark.parametrize("kind", ["agis", "openapi", "ai", "llms"])
def test_service_without_endpoints_is_refused(tmp_path: Path, kind: str) -> None:
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
    assert "--part" in run(path, kind="ai").stderr
    assert len(json.loads(run(path, "--part", "a", kind="ai").stdout)["capabilities"]) == 60
    with pytest.raises(ConfigError, match="use one of"):
        run(path, "--part", "c", kind="ai")


def test_an_agent_card_contains_the_address_of_its_interface(tmp_path: Path) -> None:
    card = json.loads(run(HOTEL, "--url", "https://rooms.example/", kind="a2a").stdout)
    assert [(each["url"], each["protocolVersion"]) for each in card["supportedInterfaces"]] == [
        ("https://rooms.example/a2a", "1.0"),
        ("https://rooms.example/a2a", "0.3"),
    ]
    legacy = json.loads(run(HOTEL, "--url", "https://rooms.example", "--legacy", kind="a2a").stdout)
    assert (legacy["url"], legacy["protocolVersion"]) == ("https://rooms.example/a2a", "0.3.0")


def test_an_agent_card_without_an_address_is_refused() -> None:
    with pytest.raises(ConfigError, match="give --url, or set url in"):
        run(HOTEL, kind="a2a")


def tools(*arguments: object) -> Any:
    return json.loads(run(HOTEL, *arguments, kind="tools").stdout)


def test_tools_are_a_list_for_the_api_of_a_model() -> None:
    chat, responses = tools("--style", "openai"), tools("--style", "openai-responses")
    assert [tool["function"]["name"] for tool in chat] == [tool["name"] for tool in responses]
    assert all(tool["strict"] for tool in responses)
    assert "strict" not in tools("--style", "anthropic", "--no-strict")[0]
    (declared,) = tools("--style", "gemini")
    assert len(declared["functionDeclarations"]) == len(chat)


def test_tools_can_be_chosen_by_a_query_that_fits_and_deferred() -> None:
    search, booking_tool = tools("--style", "anthropic", "--query", "book a room", "--limit", 1, "--defer")
    assert search["type"].startswith("tool_search")
    assert (booking_tool["name"], booking_tool["defer_loading"]) == ("book_room", True)
    with pytest.raises(CommandFailedError, match="has no endpoint that fits the query"):
        run(HOTEL, "--style", "openai", "--query", "zzz", kind="tools")


def test_tools_that_are_not_strict_are_named_with_the_reason(tmp_path: Path) -> None:
    app = tmp_path / "service.py"
    app.write_text(
        "from typing import Any\nfrom bespeak import App\n"
        'app = App("X", server_id="x.example", operator="X", contact="ops@x.example")\n'
        '@app.endpoint("QUERY", "/rooms", impact="informational")\n'
        "def rooms(any_value: Any = None) -> dict[str, str]:\n"
        '    """Find rooms.\n\n    Outcome: The rooms are returned.\n    """\n    return {}\n'
    )
    result = run(app, "--style", "openai", kind="tools")
    assert json.loads(result.stdout)[0]["function"]["strict"] is False
    assert "note: query_rooms is not strict: any_value: any value is accepted" in result.stderr


@rows(
    "options, message",
    (["--style", "openai", "--defer"], "--defer is for openai-responses and anthropic"),
    (["--style", "grok"], "'grok' is not one of"),
    ([], "Missing option '--style'"),
)
def test_options_that_do_not_fit_are_usage_errors(options: list[str], message: str) -> None:
    result = run(HOTEL, *options, kind="tools")
    assert result.exit_code == 2
    assert message in result.stderr


SECRETIVE = """
[server]
server_id = "shop.example"
operator = "Shop"
contact = "ops@shop.example"
signing_key = "missing.pem"

[http]
url = "https://shop.example"

[methods]
enable = ["PURCHASE"]

[payments]
provider = "https://payments.example"

[delivery.smtp]
host = "mail.example"
from = "shop@shop.example"
user = "shop"
password = "${MAIL_PASSWORD_FOR_NO_TEST}"
"""
ENDPOINT = """
[endpoint]
method = "QUERY"
path = "/{name}"
description = "Finds {name}."
errors = ["tool_error", "upstream_timeout", "upstream_connection_error", "upstream_authentication_failed",
          "upstream_error", "upstream_malformed_response"]
input_schema = {{ type = "object", additionalProperties = false }}
output_schema = {{ type = "object" }}

[endpoint.semantic]
intent = "Find {name} in the catalog."
actor = "agent"
outcome = "The {name} that match are returned."
capability = "retrieval"
confidence = 0.9
impact = "informational"
is_idempotent = true

[endpoint.handler]
type = "external_service"
{handler}
"""
OVER_HTTP = """
url = "https://api.example/goods"
method = "GET"
headers = { Authorization = "Bearer ${TOKEN_FOR_NO_TEST}" }
"""
OVER_MCP = """
[endpoint.handler.mcp]
tool = "stock"
command = "stock-server"
args = ["--key", "${KEY_FOR_NO_TEST}"]
env = ["SECRET_FOR_NO_TEST"]
"""


@pytest.fixture
def secretive(tmp_path: Path) -> Path:
    """Return a deployment whose credentials are not set here."""
    folder = tmp_path / "shop"
    (folder / "endpoints").mkdir(parents=True)
    (folder / "bespeak.toml").write_text(SECRETIVE)
    for name, handler in (("goods", OVER_HTTP), ("stock", OVER_MCP)):
        text = ENDPOINT.format(name=name, handler=handler)
        (folder / "endpoints" / f"{name}.toml").write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["agis", "openapi", "ai", "llms", "a2a", "jsonld"])
def test_export_needs_no_credential_of_an_upstream_and_no_key(kind: str, secretive: Path) -> None:
    found = run(secretive, kind=kind)
    assert "goods" in found.stdout
    assert "stock" in found.stdout
    assert "FOR_NO_TEST" not in found.output.replace("MAIL_PASSWORD_FOR_NO_TEST", "")


def test_commands_that_only_describe_need_no_credential(secretive: Path) -> None:
    settings = secretive / "bespeak.toml"
    settings.write_text(SECRETIVE.replace('signing_key = "missing.pem"\n', ""))
    tools = json.loads(run(secretive, "--style", "openai", kind="tools").stdout)
    assert {tool["function"]["name"] for tool in tools} >= {"query_goods", "query_stock"}
    shown = CliRunner().invoke(discover, [str(secretive)])
    assert (shown.exit_code, "/goods" in shown.stdout, "/stock" in shown.stdout) == (0, True, True)


def test_sensitive_concepts_are_in_no_exported_document(tmp_path: Path) -> None:
    clinic = tmp_path / "clinic"
    shutil.copytree(HOTEL.parent / "semantic", clinic)
    configuration = clinic / "bespeak.toml"
    secret = "https://y.org/onto/clinical#note-summarize"
    web = ["--url", "https://clinic.example"]
    kinds = {**dict.fromkeys(("openapi", "ai", "llms", "a2a"), web), "agis": [], "jsonld": []}
    kinds["tools"] = ["--style", "openai"]
    assert secret in run(clinic, kind="jsonld").stdout
    configuration.write_text(f'{configuration.read_text()}sensitive = ["{secret}"]\n')
    told = {kind: run(clinic, *options, kind=kind).stdout for kind, options in kinds.items()}
    assert [kind for kind, text in told.items() if not text or secret in text] == []
    assert "https://ex.org/onto/cs#TechTranslation" in told["jsonld"]


CALLER = {**dict.fromkeys(("agent_id", "ca_file", "signing_key")), "scopes": (), "tls": False}
CALLER |= {"insecure": False, "timeout": 10.0}
CONFIGURATION = """
[server]
server_id = "a.example"
operator = "A"
contact = "a@a.example"
app = "exported_rooms"

[http]
url = "https://a.example/rooms"

[auth]
modes = ["signed"]

[idempotency]
require = true
"""
APP = """
from bespeak import App
app = App("Rooms", server_id="a.example", operator="A", contact="a@a.example")

@app.endpoint("FIND", "/room", impact="informational", intent="Find a room.", outcome="A room is found.", {more})
def find() -> dict:
    return {{}}
"""


def deployment(folder: Path, module: str, more: str = "") -> str:
    (folder / "bespeak.toml").write_text(CONFIGURATION.replace("exported_rooms", module))
    (folder / f"{module}.py").write_text(APP.format(more=more))
    return str(folder)


def test_deployment_includes_its_configuration_and_needs_a_public_endpoint(tmp_path: Path) -> None:
    found = open_exported(deployment(tmp_path, "exported_rooms"), {})
    assert (found.http.url, found.auth) == ("https://a.example/rooms", AuthSettings(modes=("signed",)))
    assert found.keys_required
    assert open_exported(str(tmp_path), {}, url="https://b.example/").http.url == "https://b.example"
    with pytest.raises(CommandFailedError, match="no endpoints"):
        open_exported(deployment(tmp_path, "exported_hidden", "internal=True"), {})


def test_endpoints_are_those_that_are_served_with_inherited_values() -> None:
    found = open_exported(str(HOTEL), {})
    assert all(endpoint.semantic.capability for endpoint in found.service.endpoints)
    assert found.catalog_warnings.keys() == {"AUDITLOG"}
    assert found.version.startswith("v-")


@pytest.mark.process
def test_live_web_service_keeps_the_name_in_its_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_CACHE", "off")
    here = open_exported(str(HOTEL), {}).service
    with serving(HOTEL, "--http", "127.0.0.1:0") as live:
        there = open_exported(f"{live.url}/.well-known/ai", CALLER)
        by_agtp = open_exported(live.uri, CALLER)
    assert (there.service.identity.name, there.service.description) == (here.identity.name, here.description)
    assert there.http.url == live.url
    assert (by_agtp.service.identity.name, by_agtp.http.url) == ("", None)


@rows("scopes, required", ([], False), (["booking:room"], True))
def test_a_document_requires_a_scope_if_one_of_its_endpoints_does(
    tmp_path: Path, scopes: list[str], required: bool
) -> None:
    document = booking()
    document["endpoints"][0]["required_scopes"] = scopes
    (tmp_path / "rooms.agis").write_text(yaml.safe_dump(document))
    policies = open_exported(str(tmp_path / "rooms.agis"), {}).service.policies
    assert policies.scope_required_for_invocation is required

"""`bespeak import`: AGIS documents, OpenAPI descriptions, and the arguments that name a source."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.app.cli.invoking import invoking
from tests.cases import rows
from tests.documents.agis_documents import booking
from tests.documents.openapi.notes_api import described
from tests.process import serving

import bespeak
from bespeak.agent.client.errors import ServiceError
from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.app.cli.import_ import import_, open_agis_file, open_description
from bespeak.app.server.mcp_source import named_server, read_tools
from bespeak.contract.handler import McpServer
from bespeak.contract.service import DataClass, DataManifest, Vocabulary
from bespeak.documents.agis.canonical import parse_agis, write_json, write_yaml
from bespeak.documents.agis.document import agis_service, read_agis
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.errors import ConfigError
from bespeak.terminal import CommandFailedError
from bespeak.text.source.tree import Tree

AGENT = "0a3f" * 16


run = invoking(import_, "agis", raises=True, standalone_mode=False)


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
        *("Expr", "ImportFrom", "ImportFrom", "ImportFrom", "FunctionDef", "FunctionDef")
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


run_openapi = invoking(import_, "openapi", raises=True, standalone_mode=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.json"
    path.write_text(json.dumps(described("https://notes.example")))
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "endpoints").iterdir()}


def test_summary_lists_the_next_steps(file: Path, tmp_path: Path) -> None:
    told = run_openapi(file, "-o", tmp_path / "out").stdout
    assert "10 endpoints" in told
    assert "REVIEW.md" in told
    assert "ACME_NOTES_API_KEY" in told
    assert "bespeak serve" in told


def test_summary_is_printed_as_json_and_operations_are_selected_by_patterns(file: Path, tmp_path: Path) -> None:
    summary = json.loads(run_openapi(file, "-o", tmp_path / "out", "--json").stdout)
    assert (summary["endpoints"], summary["variables"]) == (10, ["UPSTREAM_ACME_NOTES_API_KEY"])
    assert set(summary["guesses"]) == {"high", "medium", "low"}
    assert all((tmp_path / "out" / name).is_file() for name in summary["files"])
    run_openapi(file, "-o", tmp_path / "few", "--include", "/notes", "--exclude", "create*")
    assert names(tmp_path / "few") == {"list-notes.toml"}


def test_folder_with_files_is_not_changed(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        run_openapi(file, "-o", out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_force_replaces_only_files_of_an_earlier_import(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_openapi(file, "-o", out)
    (out / "mine.txt").write_text("mine")
    (out / "endpoints" / "own.toml").write_text("# my own endpoint\n")
    run_openapi(file, "-o", out, "--force", "--include", "listNotes")
    assert names(out) == {"list-notes.toml", "own.toml"}
    assert (out / "mine.txt").read_text() == "mine"


def test_force_does_not_replace_other_files(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_openapi(file, "-o", out)
    (out / "bespeak.toml").write_text('[server]\nserver_id = "mine.example"\n')
    with pytest.raises(ConfigError, match="not written by this command"):
        run_openapi(file, "-o", out, "--force")
    assert "mine.example" in (out / "bespeak.toml").read_text()


def test_a_description_without_a_server_needs_one(tmp_path: Path) -> None:
    data: dict[str, Any] = described("https://notes.example")
    del data["servers"]
    path = tmp_path / "notes.json"
    path.write_text(json.dumps(data))
    with pytest.raises(CommandFailedError, match="--server"):
        run_openapi(path, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run_openapi(path, "-o", tmp_path / "out", "--server", "https://other.example/v3")
    assert 'url = "https://other.example/v3/notes?limit=20"' in (tmp_path / "out/endpoints/list-notes.toml").read_text()


def test_server_wins_over_the_described_one_and_the_review_says_so(file: Path, tmp_path: Path) -> None:
    run_openapi(file, "-o", tmp_path / "out", "--server", "https://other.example/v3")
    assert 'url = "https://other.example/v3/notes?limit=20"' in (tmp_path / "out/endpoints/list-notes.toml").read_text()
    review = (tmp_path / "out/REVIEW.md").read_text()
    assert (
        "- --server: https://other.example/v3 is used instead of https://notes.example/v2, in 10 operations" in review
    )


@pytest.mark.parametrize("server", ["ftp://x", "notes", "https://", "https://x/?a=1"])
def test_server_must_be_a_url(file: Path, tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigError, match="--server"):
        run_openapi(file, "-o", tmp_path / "out", "--server", server)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"openapi": "3.0.0"}', "a: b", "\x00"])
def test_invalid_description_is_refused_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(CommandFailedError):
        run_openapi(path, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_empty_selection_and_an_output_that_is_a_file_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="no operation"):
        run_openapi(file, "-o", tmp_path / "out", "--include", "nothing")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="is a file"):
        run_openapi(file, "-o", file, "--force")


def test_notes_are_not_counted_as_left_out(file: Path, tmp_path: Path) -> None:
    described = json.loads(file.read_text())
    described["webhooks"] = {"changed": {"post": {"responses": {"200": {"description": "ok"}}}}}
    file.write_text(json.dumps(described))
    ended = run_openapi(file, "-o", tmp_path / "out")
    assert "10 endpoints, 0 left out, 2 notes on the description" in ended.stdout
    assert "1 webhook is not imported" in (tmp_path / "out" / "REVIEW.md").read_text()


def test_server_option_resolves_the_missing_server_finding(file: Path, tmp_path: Path) -> None:
    described = json.loads(file.read_text())
    del described["servers"]
    file.write_text(json.dumps(described))
    assert "D167" not in run_openapi(file, "-o", tmp_path / "out", "--server", "https://notes.example").output


@pytest.mark.parametrize("server", ["https://user:s3cret@notes.example", "https://notes.example:99999"])
def test_a_server_with_credentials_or_without_a_port_is_refused(file: Path, tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigError, match="--server") as refused:
        run_openapi(file, "-o", tmp_path / "out", "--server", server)
    assert "s3cret" not in str(refused.value)
    assert not (tmp_path / "out").exists()


REDIRECTS = {"/private": "http://10.0.0.1/openapi.json", "/loop": "/loop"}


class Site(BaseHTTPRequestHandler):
    """Respond by request path."""

    def do_GET(self) -> None:
        if self.path == "/openapi.json":
            body = json.dumps(described("https://notes.example")).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        elif self.path in REDIRECTS:
            self.send_response(302)
            self.send_header("Location", REDIRECTS[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/endless":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b" ")
            self.connection.recv(1)  # until the client gives up
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the standard library
        """Keep quiet."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_url_given_by_the_user_is_fetched(site: str) -> None:
    description, findings = open_description(f"{site}/openapi.json", insecure=False)
    assert (description.title, description.source) == ("Acme Notes", f"{site}/openapi.json")
    assert [finding for finding in findings if finding.severity != "info"] == []


def test_another_port_of_a_private_host_is_not_followed(site: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as other:
        REDIRECTS["/elsewhere"] = f"http://127.0.0.1:{other.server_port}/openapi.json"
        with pytest.raises(CommandFailedError, match="this machine"):
            open_description(f"{site}/elsewhere", insecure=False)


def test_a_body_without_end_is_abandoned_at_the_deadline(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Fetcher.__init__.__kwdefaults__, "deadline", 0.2)
    with pytest.raises(CommandFailedError, match=r"within 0\.2 seconds"):
        open_description(f"{site}/endless", insecure=False)


@pytest.mark.parametrize("path", ["/private", "/loop", "/none"])
def test_forbidden_redirect_loop_or_missing_document_is_refused(site: str, path: str) -> None:
    with pytest.raises(CommandFailedError):
        open_description(f"{site}{path}", insecure=False)


def test_plain_http_needs_localhost_or_insecure_and_a_file_must_be_readable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--insecure"):
        open_description("http://notes.invalid/x", insecure=False)
    with pytest.raises(CommandFailedError, match="cannot be resolved"):
        open_description("http://notes.invalid/x", insecure=True)
    with pytest.raises(ConfigError):
        open_description(str(tmp_path / "none.json"), insecure=False)
    with pytest.raises(ConfigError, match="regular file"):
        open_description(str(tmp_path), insecure=False)


@pytest.mark.parametrize(
    "address", ["ftp://notes.example/x", "file:///etc/passwd", "https://user:pw@notes.example/x", "http://[::1/x"]
)
def test_other_schemes_are_usage_errors(address: str) -> None:
    with pytest.raises(ConfigError):
        open_description(address, insecure=True)


def test_oversized_file_is_refused_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(41_000_000)
    with pytest.raises(CommandFailedError, match="40 MB"):
        open_description(str(path), insecure=False)


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


def test_command_is_one_argument_in_quotes_or_several() -> None:
    expected = McpServer(tool="", command="npx", args=("-y", "a b"))
    assert named_server(("npx -y 'a b'",)) == expected
    assert named_server(("npx", "-y", "a b")) == expected


def test_relative_files_are_looked_for_in_the_folder_of_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").touch()
    assert named_server(("python server.py",)).folder == str(tmp_path)
    assert named_server(("python other.py",)).folder == ""


def test_url_takes_headers_and_a_token_file(tmp_path: Path) -> None:
    server = named_server(("https://x.example/mcp",), headers=("X-Key: ${KEY}",), token_file=str(tmp_path / "t"))
    assert (server.url, dict(server.headers)) == ("https://x.example/mcp", {"X-Key": "${KEY}"})
    assert server.token_file == str(tmp_path / "t")


@rows(
    "words, options, said",
    (("http://x.example/mcp",), {}, "Give an https:// URL"),
    (("https://u:p@x.example/mcp",), {}, "without a user"),
    (("https://x.example/mcp",), {"env": ("KEY",)}, "--env is for a command"),
    (("serve",), {"headers": ("A: b",)}, "are for a URL"),
    (("https://x.example/mcp",), {"headers": ("oops",)}, "must be 'NAME: VALUE'"),
    (("https://x.example/mcp",), {"headers": ("Authorization: Bearer k",)}, "would be written to files"),
    (("serve --api-key k1",), {}, "The value of '--api-key' would be written to files"),
)
def test_what_cannot_be_written_to_files_is_refused(words: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        named_server(words, **options)


def test_missing_program_and_variable_are_told_before_anything_is_started() -> None:
    with pytest.raises(ConfigError, match="'surely-not-installed' is not found"):
        asyncio.run(read_tools(McpServer(tool="", command="surely-not-installed"), "x"))
    with pytest.raises(ConfigError, match="'SURELY_NOT_SET', which is not set"):
        asyncio.run(read_tools(McpServer(tool="", command="sh", env=("SURELY_NOT_SET",)), "x"))


@pytest.mark.process
def test_server_that_does_not_speak_mcp_is_told_with_its_words() -> None:
    with pytest.raises(CommandFailedError, match=r"(?s)the server cannot be reached: .* It said: no such thing"):
        asyncio.run(read_tools(McpServer(tool="", command="sh", args=("-c", "echo no such thing >&2; exit 1")), "sh"))

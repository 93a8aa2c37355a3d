"""Test reading descriptions from files and URLs: size limit, TLS, safe redirects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.documents.agis_documents import booking
from tests.documents.openapi.notes_api import described

from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.app.cli.document_source import open_agis_file, open_description
from bespeak.app.cli.main import CommandFailedError
from bespeak.documents.agis.canonical import write_json, write_yaml
from bespeak.errors import ConfigError

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
    assert description.title == "Acme Notes"
    assert description.source == f"{site}/openapi.json"
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


def test_plain_http_needs_localhost_or_insecure() -> None:
    with pytest.raises(ConfigError, match="--insecure"):
        open_description("http://notes.invalid/x", insecure=False)
    with pytest.raises(CommandFailedError, match="cannot be resolved"):
        open_description("http://notes.invalid/x", insecure=True)


@pytest.mark.parametrize(
    "address", ["ftp://notes.example/x", "file:///etc/passwd", "https://user:pw@notes.example/x", "http://[::1/x"]
)
def test_other_schemes_are_usage_errors(address: str) -> None:
    with pytest.raises(ConfigError):
        open_description(address, insecure=True)


def test_unreadable_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        open_description(str(tmp_path / "none.json"), insecure=False)
    with pytest.raises(ConfigError, match="regular file"):
        open_description(str(tmp_path), insecure=False)


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

"""What may start, and whose word counts."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.cases import rows
from tests.process import serving
from tests.service import echo, make_endpoint

from bespeak.app.server.settings import (
    RESERVE,
    Settings,
    fit_connections,
    plan_settings,
    with_http_face,
    with_public_url,
)
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import ClientCertificateSettings, LimitSettings, ListenSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.faces.limits import MAX_BUFFERED
from bespeak.protocol.address import Address
from bespeak.state.identity.settings import AuthSettings, MtlsSettings


def test_the_command_line_overrides_the_configuration_and_that_the_default() -> None:
    document = ServerDocument(
        listen=ListenSettings(agtp="127.0.0.1:5000", workers=3), limits=LimitSettings(max_body=1000)
    )
    assert plan_settings("rooms:app", document).address == Address("127.0.0.1", 5000)
    assert plan_settings("rooms:app", document).workers == 3
    assert plan_settings("rooms:app", document).max_body == 1000
    assert plan_settings("rooms:app", document).idle_timeout == 75.0
    assert plan_settings("rooms:app", document, address=":6000", workers=1).address.port == 6000
    assert plan_settings("rooms:app", ServerDocument()).address == Address("127.0.0.1", 4480)
    assert plan_settings("rooms:app", ServerDocument(), store="memory").store == "memory"
    assert plan_settings("rooms:app", ServerDocument()).store == "bespeak.db"


def test_http_is_spoken_where_it_is_asked_for_and_held_to_the_same_rules(tmp_path: Path) -> None:
    document = ServerDocument(listen=ListenSettings(http="127.0.0.1:9000"), http=HttpSettings(ai_alias=True))
    assert plan_settings("rooms:app", ServerDocument()).http is None
    assert plan_settings("rooms:app", document).http == Address("127.0.0.1", 9000)
    assert plan_settings("rooms:app", document).web.ai_alias
    assert plan_settings("rooms:app", document, http="localhost").http == Address("localhost", 8080)
    assert plan_settings("rooms:app", document, http=":0").http == Address("127.0.0.1", 0)
    with pytest.raises(ConfigError, match=r"HTTP on 0\.0\.0\.0:8080 \(--http\) needs TLS"):
        plan_settings("rooms:app", ServerDocument(), http="0.0.0.0")
    certificate = tmp_path / "cert.pem"
    certificate.touch()
    with pytest.raises(ConfigError, match=r"\(--http\) would not be authenticated: choose \[auth\] modes"):
        plan_settings("rooms:app", ServerDocument(), http="0.0.0.0", certificate=certificate, key=certificate)
    assert plan_settings("rooms:app", ServerDocument(), http="0.0.0.0", insecure=True).http is not None
    with pytest.raises(ConfigError, match="another port"):
        plan_settings("rooms:app", ServerDocument(), address=":5000", http=":5000")


@rows(
    "options, said",
    ({"address": "0.0.0.0:4480"}, "needs TLS"),
    ({"certificate": Path("c.pem")}, "both"),
    ({"certificate": Path("c.pem"), "key": Path("k.pem")}, r"no such file: c\.pem, the certificate \(--cert\)"),
    *(({"workers": workers}, "--workers") for workers in (0, -1, 1000)),
)
def test_options_that_are_unsafe_or_incomplete_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan_settings("rooms:app", ServerDocument(), **options)


def test_plain_or_unproven_beyond_this_machine_must_be_asked_for(tmp_path: Path) -> None:
    certificate = tmp_path / "cert.pem"
    certificate.touch()
    away = {"address": "0.0.0.0:4480", "certificate": certificate, "key": certificate}
    with pytest.raises(ConfigError, match=r"choose \[auth\] modes"):
        plan_settings("rooms:app", ServerDocument(), **away)
    proven = ServerDocument(auth=AuthSettings(modes=("token",)))
    assert plan_settings("rooms:app", proven, **away).auth.modes == ("token",)
    assert plan_settings("rooms:app", ServerDocument(), insecure=True, **away).auth.modes == ("open",)
    assert plan_settings("rooms:app", ServerDocument(), address="127.0.0.1:0").auth.modes == ("open",)
    assert plan_settings("rooms:app", ServerDocument(), address="0.0.0.0:4480", insecure=True).insecure


def test_the_bound_of_requests_follows_the_largest_body_and_fitting_connections_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def plan(**limits: int) -> int:
        return plan_settings("rooms:app", ServerDocument(limits=LimitSettings(**limits))).max_buffered

    assert plan() == plan(max_body=1000) == MAX_BUFFERED
    assert plan(max_body=MAX_BUFFERED) == 4 * MAX_BUFFERED
    with pytest.raises(ConfigError, match=r"max_buffered of \[limits\] must be at least 66536"):
        plan(max_body=1000, max_buffered=66_535)
    settings = Settings(target="", address=Address("127.0.0.1", 0), max_connections=10)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 2 * 10 + RESERVE
    assert fit_connections(settings) is settings
    assert not caplog.records


@pytest.mark.parametrize(("mode", "required"), [("", True), ("required", True), ("optional", False)])
def test_client_certificates_need_tls_and_their_authorities(
    pair: tuple[Path, Path], tmp_path: Path, mode: str, required: bool
) -> None:
    cert, key = pair
    ca = tmp_path / "ca.pem"
    document = ServerDocument(auth=AuthSettings(modes=("mtls",), mtls=MtlsSettings(ca=ca)))
    if mode:  # asked for with the connection, whatever proves a caller
        document = ServerDocument(mtls=ClientCertificateSettings(mode=mode, ca_bundle_path=ca))
    with pytest.raises(ConfigError, match="require TLS"):
        plan_settings("rooms:app", document)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        plan_settings("rooms:app", document, certificate=cert, key=key)
    ca.touch()
    settings = plan_settings("rooms:app", document, certificate=cert, key=key)
    assert (settings.client_ca, settings.client_required) == (ca, required)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Files as of a certificate and its key."""
    files = tmp_path / "c.pem", tmp_path / "k.pem"
    for file in files:
        file.touch()
    return files


APP = """
from pathlib import Path
from bespeak import App

app = App("Files", server_id="files.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("FETCH", "/file", impact="informational", confidence=0.9, scopes=[],
              intent="Fetch the size of the file for the caller.", outcome="The size of the file is returned.")
def fetch_file() -> dict[str, int]:
    return {"size": len(Path(__file__).read_bytes())}
"""
HEADERS = b"Agent-ID: %b\r\nAuthority-Scope: files:read\r\nContent-Length: 2\r\n" % (b"a" * 64)
AGTP = b"AGTP/1.0 FETCH /file\r\n%b\r\n{}" % HEADERS
HTTP = b"POST /file:fetch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n%b\r\n{}" % HEADERS
SILENT = 300


@pytest.fixture
def app(tmp_path: Path) -> Path:
    place = tmp_path / "app.py"
    place.write_text(APP, "utf-8")
    return place


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Return the status line and, separated by a space, the Retry-After header."""
    connection.settimeout(20)
    connection.sendall(request)
    received = connection.recv(65536)
    line, *headers = received.partition(b"\r\n\r\n")[0].split(b"\r\n")
    return b" ".join((line, *(header for header in headers if header.lower().startswith(b"retry-after"))))


@contextmanager
def silence(port: int) -> Iterator[None]:
    with ExitStack() as opened:
        for _ in range(SILENT):
            opened.enter_context(socket.create_connection(("127.0.0.1", port), 20))
        yield


def connect(port: int, ca: Path | None) -> socket.socket:
    plain = socket.create_connection(("127.0.0.1", port), 20)
    return (
        plain if ca is None else ssl.create_default_context(cafile=ca).wrap_socket(plain, server_hostname="127.0.0.1")
    )


@pytest.mark.process
@pytest.mark.parametrize("secure", [False, True])
def test_silent_connections_leave_files_to_clients_and_503_to_new_ones(app: Path, tmp_path: Path, secure: bool) -> None:
    options = ["--http", "127.0.0.1:0"]
    ca = None
    if secure:
        authority, ca = trustme.CA(), tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(ca)
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "pair.pem")
        options += ["--cert", str(tmp_path / "pair.pem"), "--key", str(tmp_path / "pair.pem")]
    with serving(app, *options, files=(256, 256)) as served:
        web = int(served.url.rpartition(":")[2])
        with connect(served.port, ca) as agtp, connect(web, ca) as http:
            assert ask(agtp, AGTP) == b"AGTP/1.0 200 OK"
            assert ask(http, HTTP) == b"HTTP/1.1 200 OK"
            with silence(served.port):
                for _ in range(3):
                    assert ask(agtp, AGTP) == b"AGTP/1.0 200 OK"
                    assert ask(http, HTTP) == b"HTTP/1.1 200 OK"
                    with connect(served.port, ca) as late, connect(web, ca) as later:
                        assert ask(late, AGTP) == b"AGTP/1.0 503 Unavailable Retry-After: 5"
                        assert ask(later, HTTP) == b"HTTP/1.1 503 Service Unavailable retry-after: 5"
        served.process.kill()
        _, log = served.process.communicate()
        assert "max_connections is lowered from 10000 to 128: this process may open only 256 files" in log
        assert "Cannot accept a connection" not in log


@pytest.mark.process
def test_a_low_soft_limit_is_raised(app: Path) -> None:
    with serving(app, files=(256, 4096)) as served:
        assert resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE) == (4096, 4096)
        with silence(served.port), socket.create_connection(("127.0.0.1", served.port), 20) as late:
            assert ask(late, AGTP) == b"AGTP/1.0 200 OK"


FIND = make_endpoint("FIND", "/rooms", echo)
SERVICE = Service(
    identity=ServerIdentity(server_id="rooms.example", operator="Acme", contact="ops@acme.example"), endpoints=(FIND,)
)


def settings(http: Address | None, **more: object) -> Settings:
    return Settings(target="x", address=Address("127.0.0.1", 1), http=http, **more)  # type: ignore[arg-type]


@rows(
    "given, url",
    (settings(None), None),
    (settings(Address("127.0.0.1", 8080)), "http://127.0.0.1:8080"),
    (settings(Address("::1", 8080)), "http://[::1]:8080"),
    (settings(Address("0.0.0.0", 443), certificate=Path("c"), key=Path("k")), "https://rooms.example:443"),
    (settings(Address("127.0.0.1", 8080), web=HttpSettings(url="https://a.example")), "https://a.example"),
    (settings(Address("127.0.0.1", 0)), None),
)
def test_the_configured_url_takes_precedence_over_the_listening_address(given: Settings, url: str | None) -> None:
    assert with_public_url(given, SERVICE).web.url == url


def test_the_manifest_names_the_face_once() -> None:
    once = with_http_face(SERVICE, "https://a.example")
    assert [api["http_documentation"] for api in once.apis] == ["https://a.example/openapi.json"]
    assert with_http_face(once, "https://a.example") == once
    assert len(with_http_face(once, "https://b.example").apis) == 2


@rows(
    "hidden",
    replace(SERVICE, policies=Policies(anonymous_discovery=False)),
    replace(SERVICE, endpoints=(replace(FIND, internal=True),)),
    replace(SERVICE, endpoints=()),
)
def test_documents_that_are_not_there_are_not_named(hidden: Service) -> None:
    [face] = with_http_face(hidden, "https://a.example").apis
    assert (face["url"], "http_documentation" in face, "discovery" in face) == ("https://a.example", False, False)

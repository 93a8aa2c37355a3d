"""A real server process with few file descriptors and many silent connections."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trustme
from tests.process import serving

from bespeak.app.server.settings import RESERVE, Settings, fit_connections
from bespeak.protocol.address import Address

APP = """
from pathlib import Path
from bespeak import App

app = App("Files", server_id="files.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("FETCH", "/file", impact="informational", confidence=0.9, scopes=[])
def fetch_file() -> dict[str, int]:
    \"\"\"Fetch the size of the file for the caller.

    Outcome: The size of the file is returned.
    \"\"\"
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
    """Open many connections that send nothing."""
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
def test_silent_connections_leave_files_to_established_clients_and_503_to_new_ones(
    app: Path, tmp_path: Path, secure: bool
) -> None:
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


def test_connections_that_fit_into_the_limit_are_not_lowered(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(target="", address=Address("127.0.0.1", 0), max_connections=10)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 2 * 10 + RESERVE
    assert fit_connections(settings) is settings
    assert not caplog.records

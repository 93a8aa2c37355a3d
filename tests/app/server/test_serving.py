"""A real server process: TLS, signals, workers, a kill."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import trustme
from tests import warm
from tests.process import HOTEL, ROOT, bespeak, refused, serving

pytestmark = pytest.mark.process


@pytest.fixture
def ledger(tmp_path: Path) -> dict[str, str]:
    return {"HOTEL_LEDGER": str(tmp_path / "hotel.sqlite3")}


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path, Path]:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    files = (tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem")
    files[0].write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    files[1].write_bytes(issued.private_key_pem.bytes())
    files[2].write_bytes(authority.cert_pem.bytes())
    return files


def exchange(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(request)
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def test_one_line_announces_the_face_and_nothing_is_left_open_at_the_end(ledger: dict[str, str]) -> None:
    with serving(env=ledger) as served:
        assert served.announcement == f"AGTP  agtp://127.0.0.1:{served.port}  plain TCP, 6 endpoints, 1 worker\n"
        with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
            assert exchange(connection, b"AGTP/1.0 DISCOVER /methods\r\n\r\n").startswith(b"AGTP/1.0 200 OK\r\n")
    with serving(env={**ledger, "PYTHONDEVMODE": "1"}) as served:
        with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
            exchange(connection, b"AGTP/1.0 QUERY /rooms\r\n\r\n")
        assert served.stop() == 0
        log = served.process.stderr.read()
        assert "ResourceWarning" not in log
        assert "Traceback" not in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(ledger: dict[str, str], number: signal.Signals) -> None:
    with serving(env=ledger) as served, socket.create_connection(("127.0.0.1", served.port), 10) as connection:
        exchange(connection, b"AGTP/1.0 DISCOVER /methods\r\n\r\n")
        assert served.stop(number) == 0
        assert connection.recv(1) == b""


@pytest.mark.requirement("CORE-10.1-1", "CORE-1-1")
def test_tls_1_3_is_spoken_and_1_2_refused(ledger: dict[str, str], certificate: tuple[Path, Path, Path]) -> None:
    cert, key, ca = certificate
    with serving(HOTEL, "--cert", str(cert), "--key", str(key), env=ledger) as served:
        assert "TLS 1.3" in served.announcement
        context = ssl.create_default_context(cafile=str(ca))
        with (
            socket.create_connection(("127.0.0.1", served.port), 10) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            assert secure.version() == "TLSv1.3"
            assert exchange(secure, b"AGTP/1.0 DISCOVER /methods\r\n\r\n").startswith(b"AGTP/1.0 200")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(("127.0.0.1", served.port), 10) as plain, pytest.raises(ssl.SSLError):
            context.wrap_socket(plain, server_hostname="127.0.0.1")
        result = bespeak("discover", served.uri, "--methods", "--ca-file", str(ca))
        assert "BOOK" in result.stdout, result.stderr


def test_workers_share_port_and_manifest_and_end_with_a_parent_that_is_killed(ledger: dict[str, str]) -> None:
    with serving(HOTEL, "--workers", "2", env=ledger) as served:
        assert "2 workers" in served.announcement
        tags = set()
        for _ in range(12):
            with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
                head = exchange(connection, b"AGTP/1.0 DISCOVER /\r\n\r\n").partition(b"\r\n\r\n")[0]
                tags.add(next(line for line in head.split(b"\r\n") if line.startswith(b"ETag")))
        assert len(tags) == 1
        assert served.stop() == 0
    with serving(HOTEL, "--workers", "2", env=ledger) as served:
        served.stop(signal.SIGKILL)
        # The workers hold the other end of this pipe: it closes when the last of them is gone.
        assert served.process.stdout.read() == ""


def test_a_worker_that_dies_is_replaced(ledger: dict[str, str]) -> None:
    with serving(HOTEL, "--workers", "2", env=ledger, cold=True) as served:
        children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children")
        if not children.exists():
            pytest.skip("finding the workers needs /proc")
        before = _workers(children)
        os.kill(before[0], signal.SIGKILL)
        assert served.process.stderr is not None
        assert any("starting another" in line for line in served.process.stderr)
        assert before[0] not in _wait_for_two(children, before[0])
        with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
            assert exchange(connection, b"AGTP/1.0 DISCOVER /methods\r\n\r\n").startswith(b"AGTP/1.0 200")
        assert served.stop() == 0


def _workers(children: Path) -> list[int]:
    """Return the serving processes, without the resource tracker of the interpreter."""
    found = [int(pid) for pid in children.read_text().split()]
    return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _wait_for_two(children: Path, dead: int) -> list[int]:
    for _ in range(100_000):
        found = [pid for pid in _workers(children) if pid != dead]
        if len(found) == 2:
            return found
    raise AssertionError("no second worker came")


def test_addresses_in_use_are_clear_errors_for_one_server_and_for_workers(
    tmp_path: Path, ledger: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options in ([], ["--workers", "2"]):
            assert "annot listen on 127.0.0.1" in refused(
                "serve", str(HOTEL), "--agtp", f"127.0.0.1:{port}", "--store", str(tmp_path / "s"), *options
            )
    with serving(HOTEL, "--workers", "2", env=ledger) as served:
        options = ("--workers", "2", "--agtp", f"127.0.0.1:{served.port}", "--store", str(tmp_path / "s"))
        assert "Address already in use" in refused("serve", str(HOTEL), *options, env=ledger)
        assert served.stop() == 0


STUCK = """
import threading

from bespeak import App

app = App("x", server_id="x", operator="x", contact="x")


@app.endpoint("RUN", "/jobs", impact="reversible", intent="Run for ever.", outcome="There is none.")
def stuck() -> dict[str, int]:
    print("inside", flush=True)
    threading.Event().wait()
    return {}
"""


def test_a_handler_that_never_returns_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "stuck:app"\n[limits]\ndrain_timeout = 0.1\n')
    with serving(tmp_path) as served, socket.create_connection(("127.0.0.1", served.port), 10) as connection:
        connection.sendall(b"AGTP/1.0 RUN /jobs\r\n\r\n")
        assert (served.process.stdout.readline(), served.stop()) == ("inside\n", 0)


def test_invalid_endpoints_dying_workers_and_exiting_modules_keep_the_server_from_starting(tmp_path: Path) -> None:
    folder = tmp_path / "endpoints"
    folder.mkdir()
    source = (HOTEL / "endpoints" / "book-room.toml").read_text()
    (folder / "bad.toml").write_text(source.replace('path = "/room"', 'path = "/book"'))
    (tmp_path / "bespeak.toml").write_text((HOTEL / "bespeak.toml").read_text().partition("[[resources]]")[0])
    told = refused("serve", str(tmp_path), "--strict")
    assert "bad.toml" in told
    assert "'book'" in told
    (tmp_path / "bespeak.toml").unlink()
    (tmp_path / "dying.py").write_text(
        "import multiprocessing, os\n\nfrom bespeak import App\n\n"
        "if multiprocessing.parent_process() is not None:\n    os._exit(3)\n"
        'app = App("x", server_id="x", operator="x", contact="x")\n'
    )
    assert "ended with code 3 before it was ready" in refused(
        "serve", str(tmp_path / "dying.py"), "--workers", "2", "--agtp", "127.0.0.1:0"
    )
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)")
    assert "SystemExit" in refused("serve", str(tmp_path / "leaving.py"))


def test_a_malformed_file_is_reported_with_its_line_and_the_rest_is_served(tmp_path: Path) -> None:
    folder = tmp_path / "endpoints"
    folder.mkdir()
    (folder / "broken.toml").write_text('[endpoint]\nmethod = "BOOK\n')
    (folder / "good.toml").write_text(
        (HOTEL / "endpoints" / "book-room.toml").read_text().replace("hotel.desk.book_room", "copy.copy")
    )
    with serving(tmp_path) as served:
        assert "1 endpoint," in served.announcement
        served.stop()
        assert "broken.toml:2" in served.process.stderr.read()


@pytest.mark.requirement("API-4.5-1", "API-4.5-2", "API-4.5-4", "API-4.9-1", "API-13.2-7", "API-13.2-8")
def test_an_alternative_catalog_without_a_verb_costs_its_endpoints_and_policy_entries_only(tmp_path: Path) -> None:
    catalog = json.loads((ROOT / "src/bespeak/contract/catalog/data/methods-1.1.0.json").read_text())
    del catalog["verbs"]["BOOK"]
    del catalog["verbs"]["RESERVE"]
    catalog["version"] = "2.0.0"
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    shutil.copytree(HOTEL / "endpoints", tmp_path / "endpoints")
    shutil.copytree(HOTEL / "hotel", tmp_path / "hotel")
    configuration = (HOTEL / "bespeak.toml").read_text().replace('catalog = "1.1.0"', 'catalog = "catalog.json"')
    (tmp_path / "bespeak.toml").write_text(configuration)
    with serving(tmp_path, env={"HOTEL_LEDGER": str(tmp_path / "ledger")}) as served:
        manifest = json.loads(bespeak("discover", served.uri, "--json").stdout)
        assert manifest["catalog_version"] == "2.0.0"
        assert "BOOK" not in {endpoint["method"] for endpoint in manifest["endpoints"]}
        assert manifest["policies"]["methods"]["redirects"] == []
        refused = json.loads(bespeak("call", served.uri, "BOOK", "/room", "--json").stdout)
        assert (refused["status"], refused["body"]["error"]["catalog_version"]) == (459, "2.0.0")
        assert bespeak("call", served.uri, "QUERY", "/rooms").returncode == 0
        served.stop()
        log = served.process.stderr.read()
        assert "book-room.toml" in log
        assert "RESERVE" in log


@pytest.mark.requirement("API-8.8-1", "API-8.10-3")
def test_the_manifest_is_signed_with_the_configured_key(tmp_path: Path, ledger: dict[str, str]) -> None:
    assert bespeak("keys", "new", "--out", str(tmp_path / "signing.pem")).returncode == 0
    configuration = (HOTEL / "bespeak.toml").read_text()
    (tmp_path / "bespeak.toml").write_text(
        configuration.replace("[server]", '[server]\nsigning_key = "signing.pem"').partition("[[resources]]")[0]
    )
    (tmp_path / "endpoints").mkdir()
    with serving(tmp_path, env=ledger) as served:
        manifest = json.loads(bespeak("discover", served.uri, "--json").stdout)
        assert manifest["manifest_signature"].count(".") == 2
        assert "signature valid" in bespeak("discover", served.uri).stdout


def test_a_server_without_auth_loads_no_cryptography_and_only_its_own_database() -> None:
    script = """
import asyncio, sys
from bespeak.app.cli import serve
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_target
from bespeak.state.store.settings import open_store

async def live(target):
    keeper = Keeper(assemble_target(target, ""), open_store("memory"), target.document)
    await keeper.start()
    await keeper.stop()

asyncio.run(live(load_target("examples/hotel")))
heavy = {"asyncpg", "cryptography", "httptools", "httpx", "joserfc", "sqlite3", "starlette", "uvicorn"}
print(*sorted(heavy & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["sqlite3"]


EXTRAS = (
    "a2a aiosmtplib asyncpg babel cel_expr_python dateparser duckdb mcp mcp_types nats numpy onnxruntime phonenumbers "
    "pint prometheus_client pygls pyld pyoxigraph python_calamine rapidfuzz typst wordllama"
)


def test_a_server_with_all_standard_methods_starts_without_any_extra(tmp_path: Path) -> None:
    identity = 'server_id = "a.example"\noperator = "A"\ncontact = "a@a.example"'
    (tmp_path / "bespeak.toml").write_text(f'[server]\n{identity}\n[methods]\nenable = ["*"]\n')
    script = f"""
import asyncio, sys
sys.modules |= dict.fromkeys({EXTRAS.split()!r})  # importing them fails
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_target
from bespeak.state.store.settings import open_store

async def live(target):
    keeper = Keeper(assemble_target(target, ""), open_store("memory"), target.document)
    await keeper.start()
    await keeper.stop()
    print(len(target.service.methods))

asyncio.run(live(load_target({str(tmp_path)!r})))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "50\n")


SLOW = """
import asyncio, bespeak

app = bespeak.App("Slow", server_id="slow.example", operator="Tests", contact="ops@slow.example")

@app.lifespan
async def resources():
    print("opening", flush=True)
    try:
        await asyncio.sleep(600)
        yield
    finally:
        print("closed", flush=True)

@app.endpoint("FETCH", "/greeting", impact="informational",
              intent="Fetch a greeting.", outcome="The greeting is returned.")
def greet() -> dict[str, str]:
    return {}
"""


def test_a_server_whose_lifespan_waits_can_be_stopped(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    command = ["serve", "slow.py", "--agtp", "127.0.0.1:0"]
    with warm.start(command, env=os.environ, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout.readline() == "opening\n"
        process.send_signal(signal.SIGTERM)
        assert (process.stdout.read(), process.wait(30)) == ("closed\n", 0)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process as Linux reports it")
def test_bodies_that_never_end_are_bounded_in_total_and_their_memory_is_returned(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text("[limits]\nmax_buffered = 16000000\n", "utf-8")
    (tmp_path / "endpoints").mkdir()
    with serving(tmp_path) as served, contextlib.ExitStack() as opened:

        def resident() -> int:
            status = Path(f"/proc/{served.process.pid}/status").read_text("ascii")
            return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) * 1024

        before = resident()
        crowd = [socket.create_connection(("127.0.0.1", served.port), 10) for _ in range(100)]
        for connection in crowd:
            opened.enter_context(connection)
            connection.sendall(b"AGTP/1.0 QUERY /\r\nContent-Length: 1048576\r\n\r\n" + b" " * 1048575)
        assert crowd[0].recv(65536).startswith(b"AGTP/1.0 503 Unavailable\r\n")
        assert resident() - before < 40_000_000
        with socket.create_connection(("127.0.0.1", served.port), 10) as other:
            assert exchange(other, b"AGTP/1.0 DISCOVER /methods\r\n\r\n").startswith(b"AGTP/1.0 200 OK\r\n")
        for connection in crowd:
            connection.close()
        while resident() - before > 8_000_000:
            assert served.process.poll() is None


def test_required_client_certificates_of_a_reference_deployment_are_required(
    certificate: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    cert, key, ca = certificate
    (tmp_path / "endpoints").mkdir()
    settings = f'[mtls]\nmode = "required"\nca_bundle_path = "{ca}"\n[listen]\ncert = "{cert}"\nkey = "{key}"\n'
    (tmp_path / "bespeak.toml").write_text(settings, "utf-8")
    context = ssl.create_default_context(cafile=ca)
    with serving(tmp_path) as served:

        def ask() -> bytes:
            plain = socket.create_connection(("127.0.0.1", served.port), 10)
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                secure.sendall(b"AGTP/1.0 DISCOVER /methods\r\n\r\n")
                try:
                    return secure.recv(65536)
                except OSError:  # with TLS 1.3 the client learns of the refusal after its handshake
                    return b""

        assert ask() == b""
        context.load_cert_chain(cert, key)
        assert ask().startswith(b"AGTP/1.0 200 OK\r\n")

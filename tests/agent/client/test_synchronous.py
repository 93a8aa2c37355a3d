"""The blocking twin: the same answers and the same errors, without an event loop of one's own."""

from __future__ import annotations

import inspect
import json
import socketserver
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bespeak.agent.client.errors import BusinessError, UnreachableError
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.synchronous import SyncServiceClient
from bespeak.app.server.connect import connect, connect_sync
from bespeak.errors import BespeakError, ConfigError


class Echo(socketserver.StreamRequestHandler):
    """Answers with what it was asked; REFUSE is refused, DISCOVER gets a manifest or an inventory."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            length = 0
            while (header := self.rfile.readline().strip()) != b"":
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = self.rfile.read(length)
            _, method, path = line.decode().split()
            status, answer = 200, {"method": method, "path": path, "input": json.loads(body or b"null")}
            if method == "REFUSE":
                status, answer = 422, {"error": {"code": "no"}}
            elif method == "DISCOVER":
                answer = {"endpoints": [], "catalog_versions_supported": ["1.0.0"]}
            content = json.dumps(answer).encode()
            self.wfile.write(b"AGTP/1.0 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(content), content))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


@pytest.fixture
def uri() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"agtp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_every_public_method_has_its_twin() -> None:
    def public(kind: type) -> set[str]:
        return {name for name, member in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    # The end of the block closes the blocking client.
    assert public(SyncServiceClient) == public(ServiceClient) - {"close"}
    assert inspect.signature(connect_sync) == inspect.signature(connect)


def test_calls_and_errors_are_the_same_without_a_loop(uri: str) -> None:
    with connect_sync(uri) as service:
        expected = {"method": "BOOK", "path": "/room", "input": {"room_id": "12"}}
        assert service.call("BOOK", "/room", room_id="12") == expected
        assert service.request("QUERY", "/rooms", query={"a": "b"}).json()["path"] == "/rooms?a=b"
        assert service.manifest is None
        assert service.discover() is service.manifest
        assert (service.catalog_version, service.signature.state, service.methods()) == ("1.0.0", "absent", [])
        assert str(service.locator) == uri
    with connect_sync(uri) as service, pytest.raises(BusinessError):
        service.call("REFUSE", "/x")


def test_several_threads_may_call_at_once_and_an_unreachable_service_is_a_typed_error(uri: str) -> None:
    with connect_sync(uri, pool_size=4) as service, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: service.call("BOOK", "/room", n=number)["input"]["n"], range(50)))
    assert found == list(range(50))
    with connect_sync("agtp://127.0.0.1:1") as service, pytest.raises(UnreachableError):
        service.call("BOOK", "/room")


def test_the_thread_ends_with_the_block_whatever_happens_in_it(uri: str) -> None:
    with connect_sync(uri) as service:
        service.request("QUERY", "/")
        assert "bespeak-client" in {thread.name for thread in threading.enumerate()}
    assert "bespeak-client" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(ZeroDivisionError), connect_sync(uri):
        raise ZeroDivisionError
    assert "bespeak-client" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(ConfigError), connect_sync("http://x"):
        pytest.fail("the block must not be entered")
    assert "bespeak-client" not in {thread.name for thread in threading.enumerate()}


def test_a_client_is_used_in_its_block_only(uri: str) -> None:
    with connect_sync(uri) as service:
        service.call("BOOK", "/room")
    with pytest.raises(BespeakError, match="closed; use it inside its with block"):
        service.call("BOOK", "/room")
    with pytest.raises(AttributeError, match=r"'call'.*`with bespeak.connect_sync\(uri\) as service:`"):
        connect_sync(uri).call("BOOK", "/room")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"`async with bespeak.connect\(uri\) as service:`"):
        connect(uri).call("BOOK", "/room")  # type: ignore[attr-defined]

"""Start the example hotel and print commands to try: `make demo`, or `python examples/demo.py [PORT]`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FIRST_PORT = 4480
GUEST = "5f3c2a52-6f0e-4c1b-9a44-0d4b1f0c8f11"

WHAT_TO_TRY = """
The hotel is open at {uri}, and at {url} over HTTP: open that in a browser. In another terminal:

  What does it offer?
    {bespeak} discover {uri}

  Which rooms have three beds?
    {bespeak} call {uri} QUERY /rooms beds=3

  Ask for an endpoint that the hotel does not have, see how it is composed, and call it at once (prices are in cents):
    {bespeak} propose {uri} "FIND /rooms/cheap" --given max_price:integer --needs 'rooms[].room_id, rooms[].price' \
--explain --call max_price=9500

  Book a room, as an agent with the required scopes. A second time it is refused, because the room is taken:
    {bespeak} call {uri} BOOK /room guest_id={guest} room_id=105 arrival=2027-05-01 departure=2027-05-03 \
--as ann --scope booking:room,calendar:write

  Book another one with an idempotency key. A second time returns the same answer, and the room is booked once:
    {bespeak} call {uri} BOOK /room guest_id={guest} room_id=102 arrival=2027-05-01 departure=2027-05-03 \
--as ann --scope booking:room,calendar:write --idempotency-key stay-1

  Book one without these scopes, and read the refusal:
    {bespeak} call {uri} BOOK /room guest_id={guest} room_id=108 arrival=2027-05-01 departure=2027-05-03

  The same over HTTP, and the discovery document for agents:
    curl '{url}/rooms:query?beds=3'
    curl {url}/.well-known/ai

  Check its discovery documents:
    {bespeak} lint {url} --select W

  Check the server against AGTP-API 13.1:
    {bespeak} conform {uri}

  Send an AGTP request by hand:
    {python} -c "import socket; desk = socket.create_connection(('127.0.0.1', {port})); \
desk.sendall(b'AGTP/1.0 QUERY /rooms?beds=3\\r\\nContent-Length: 0\\r\\n\\r\\n'); print(desk.recv(65536).decode())"

Ctrl-C stops the hotel and deletes its bookings. (The warning above is part of the example: AUDITLOG is deprecated.)
"""


def main() -> int:
    """Run the hotel until Ctrl-C, SIGTERM or SIGHUP, then return 0; if the server exits by itself, return its exit
    code.
    """
    port = free_port(int(sys.argv[1]) if len(sys.argv) > 1 else FIRST_PORT)
    server: subprocess.Popen[str] | None = None
    stopped = False

    def stop(*_: object) -> None:
        # An exception raised here could be raised before the server is known, or while it is being stopped.
        nonlocal stopped
        stopped = True
        if server is not None:
            server.terminate()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    with tempfile.TemporaryDirectory(prefix="bespeak-demo-") as folder:
        faces = ("--agtp", f"127.0.0.1:{port}", "--http", "127.0.0.1:0")
        options = (*faces, "--store", str(Path(folder) / "bespeak.db"))
        server = subprocess.Popen(  # noqa: S603 - our own command and our own folder
            [sys.executable, "-m", "bespeak", "serve", str(FOLDER / "hotel"), *options],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOTEL_LEDGER": str(Path(folder) / "ledger.sqlite3")},
            # Ctrl-C then reaches this process only, which stops the server and waits for it.
            start_new_session=True,
        )
        if stopped:
            server.terminate()
        try:
            assert server.stdout is not None
            announced = server.stdout.readline() and server.stdout.readline()  # HTTP  http://127.0.0.1:PORT  ...
            if announced:
                sys.stdout.write(what_to_try(port, announced.split()[1]))
                sys.stdout.flush()
            code = server.wait()
            return 0 if stopped else code
        except BrokenPipeError:
            return 0
        finally:
            server.terminate()
            server.wait()


def what_to_try(port: int, url: str) -> str:
    """Return commands that can be pasted into a shell in the current folder."""
    uri = f"agtp://127.0.0.1:{port}"
    return WHAT_TO_TRY.format(
        uri=uri, url=url, port=port, bespeak=beside("bespeak"), guest=GUEST, python=beside("python")
    )


def beside(name: str) -> str:
    """Return the shortest path of a command beside this Python."""
    installed = Path(sys.executable).with_name(name)
    here = Path.cwd()
    return str(installed.relative_to(here) if installed.is_relative_to(here) else installed)


def free_port(first: int) -> int:
    """Return the first free port, starting at `first`."""
    for port in range(first, first + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    sys.exit(f"no port is free from {first} to {first + 99}")


if __name__ == "__main__":
    sys.exit(main())

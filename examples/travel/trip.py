"""Book two trips, each as one CHAIN. The second finds no car, and what it had booked is given back.

`python examples/travel/trip.py` starts the hotel, the airline, the car rental and the agency, each as a server of its
own, and stops them at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bespeak import SyncServiceClient, connect_sync

FOLDER = Path(__file__).resolve().parent
AGENT = "0a3f" * 16
DAYS = {"arrival": "2027-05-01", "departure": "2027-05-04"}


def plan_trip(name: str, guest_id: str, room_id: str) -> list[dict[str, Any]]:
    """Return the steps of a trip. A step with `compensate` is undone if a later one fails."""
    return [
        {
            "name": "stay",
            "method": "BOOK",
            "path": "/stay",
            "parameters": {"guest_id": guest_id, "room_id": room_id, **DAYS},
            "compensate": {
                "method": "CANCEL",
                "path": "/stays/{reservation_id}",
                "parameters": {"reservation_id": {"$from": "stay.reservation_id"}},
            },
        },
        {
            "name": "flight",
            "method": "BOOK",
            "path": "/flight",
            "parameters": {"passenger": name, "flight": "CA 17"},
            "compensate": {
                "method": "CANCEL",
                "path": "/flights/{ticket_id}",
                "parameters": {"ticket_id": {"$from": "flight.ticket_id"}},
            },
        },
        {"name": "car", "method": "BOOK", "path": "/car", "parameters": {"driver": name, **DAYS}},
    ]


def main() -> None:
    """Start the services, book the trips, and say what became of them."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bespeak-travel-")))
        ledger = {"HOTEL_LEDGER": str(folder / "ledger.sqlite3")}
        hotel = stack.enter_context(serve(FOLDER.parent / "hotel", folder / "hotel.db", ledger))
        airline = stack.enter_context(serve(FOLDER / "partners" / "airline.py", folder / "airline.db"))
        cars = stack.enter_context(serve(FOLDER / "partners" / "cars.py", folder / "cars.db"))
        partners = {"TRAVEL_HOTEL": hotel, "TRAVEL_AIRLINE": airline, "TRAVEL_CARS": cars}
        uri = stack.enter_context(serve(FOLDER, folder / "travel.db", partners))
        agency = stack.enter_context(connect_sync(uri, agent_id=AGENT))
        book(agency, "Ada", "5f3c2a52-6f0e-4c1b-9a44-0d4b1f0c8f11", "102")
        stay = book(agency, "Ben", "0d9a7c64-1f57-4d0b-8f0a-2f6f3f1d2b90", "105")
        desk = stack.enter_context(connect_sync(hotel, agent_id=AGENT, scopes=["booking:room"]))
        found = desk.call("FETCH", "/reservations/{reservation_id}", reservation_id=stay["reservation_id"])
        say(f"The hotel about room {found['room_id']}: {'cancelled' if found['cancelled'] else 'reserved'}.")


def book(agency: SyncServiceClient, name: str, guest_id: str, room_id: str) -> Any:
    """Send a trip to the agency, print what became of each step, and return the output of the first one."""
    say(f"{name} wants to travel from {DAYS['arrival']} to {DAYS['departure']}.")
    receipt = agency.call("CHAIN", "/", steps=plan_trip(name, guest_id, room_id), timeout=60)
    for step in receipt["steps"]:
        said = step["error"]["message"] if "error" in step else " ".join(f"{k} {v}" for k, v in step["output"].items())
        say(f"  {step['step']}. {step['method']} {step['path']:8} {step['status']:7} {said}")
    say(f"  The trip: {receipt['status']}, as {receipt['chain_id']}\n")
    return receipt["steps"][0]["output"]


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


@contextmanager
def serve(target: Path, store: Path, settings: dict[str, str] | None = None) -> Iterator[str]:
    """Serve a target on a free port in a process of its own, and yield its address."""
    options = ["--agtp", "127.0.0.1:0", "--store", str(store)]
    server = subprocess.Popen(  # noqa: S603 - our own command and our own folder
        [sys.executable, "-m", "bespeak", "serve", str(target), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(settings or {})},
    )
    try:
        assert server.stdout is not None
        announced = server.stdout.readline().split()  # AGTP  agtp://127.0.0.1:PORT  ...
        if not announced:
            sys.exit(f"{target} does not start; `bespeak serve {target}` tells why")
        yield announced[1]
    finally:
        server.terminate()
        server.communicate()


if __name__ == "__main__":
    main()

"""A server that is killed between the steps of a composition: what was done is not done again."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.process import serving

import bespeak
from bespeak import Reply, UnreachableError

pytestmark = pytest.mark.process

APP = '''
import os
import signal
from pathlib import Path

from bespeak import App, Refusal

HERE = Path(__file__).parent
app = App(
    "Trips", server_id="trips.example", operator="Acme", contact="ops@trips.example",
)


def do(name: str) -> dict[str, str]:
    """Do something, unless the process is to be killed before it."""
    fatal = HERE / f"kill {name}"
    if fatal.exists():
        fatal.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    with (HERE / "done").open("a") as done:
        done.write(f"{name}\\n")
    return {"id": name}


def declare(method: str, path: str, name: str) -> None:
    @app.endpoint(method, path, impact="reversible", errors={"full": "There is no place."})
    def handle(id: str = "") -> dict[str, str]:
        """Do one thing of a trip.

        Outcome: The thing is done.
        """
        if (HERE / f"refuse {name}").exists():
            raise Refusal("full")
        return do(name)


for thing in ("flight", "hotel", "car"):
    declare("BOOK", f"/{thing}", thing)
    declare("CANCEL", f"/{thing}", f"no {thing}")


@app.recipe("BOOK", "/trip", impact="reversible")
def book_trip(id: str = "") -> dict[str, str]:
    """Book a whole trip.

    Outcome: Flight, hotel and car are booked.
    """
    flight = app.step("BOOK", "/flight", {"id": id}, undo=("CANCEL", "/flight", lambda made: {"id": made.id}))
    hotel = app.step("BOOK", "/hotel", {"id": flight.id}, undo=("CANCEL", "/hotel", lambda made: {"id": made.id}))
    return app.step("BOOK", "/car", {"id": hotel.id})
'''


def book(folder: Path) -> Reply | None:
    """Serve the trips and book one, always with the same key; None if the server was killed meanwhile."""

    async def call(uri: str) -> Reply | None:
        async with bespeak.connect(uri, retry=None) as service:
            try:
                return await service.request("BOOK", "/trip", {}, headers={"Idempotency-Key": "trip-1"})
            except UnreachableError:
                return None

    with serving(f"{folder / 'trips.py'}:app", "--store", str(folder / "trips.db"), cwd=folder) as served:
        reply = asyncio.run(call(served.uri))
        if reply is None:
            assert served.process.wait(20) == -signal.SIGKILL
        return reply


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trips.py").write_text(APP)
    return tmp_path


def done(folder: Path) -> list[str]:
    return (folder / "done").read_text().split("\n")[:-1]


def test_steps_before_a_crash_are_not_repeated(folder: Path) -> None:
    for name in ("hotel", "car"):
        (folder / f"kill {name}").touch()
        assert book(folder) is None
    reply = book(folder)
    assert (reply.status, reply.output) == (200, {"id": "car"})
    assert done(folder) == ["flight", "hotel", "car"]


def test_what_was_begun_to_be_undone_is_undone_once_after_a_crash(folder: Path) -> None:
    (folder / "refuse car").touch()
    (folder / "kill no flight").touch()
    assert book(folder) is None
    (folder / "refuse car").unlink()
    reply = book(folder)
    assert (reply.status, reply.error and reply.error.code) == (422, "composition_failed")
    assert done(folder) == ["flight", "hotel", "no hotel", "no flight"]

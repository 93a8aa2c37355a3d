import sqlite3
from collections.abc import Iterator

import pytest
from desk import TABLE, app, open_session

import bespeak

AGENT = "0a3f" * 16


def in_memory() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as connection:
        connection.execute(TABLE)
        connection.execute("INSERT INTO stays VALUES ('101', '2026-12-01', 'somebody')")
        yield connection


def test_a_taken_room_is_refused() -> None:
    with (
        app.override(open_session, in_memory),
        bespeak.connect_sync(app, agent_id=AGENT, scopes=["rooms:book"]) as desk,
    ):
        assert desk.call("BOOK", "/room", room="102", night="2026-12-01") == {"bookings": 2}
        with pytest.raises(bespeak.BusinessError, match="Room 101 is taken"):
            desk.call("BOOK", "/room", room="101", night="2026-12-01")

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from bespeak import App, Context, Needs, Refusal

app = App("Front Desk", server_id="desk.example", operator="Town Hotel", contact="desk@hotel.example")

FILE = Path(__file__).with_name("desk.sqlite3")
TABLE = "CREATE TABLE IF NOT EXISTS stays (room TEXT, night TEXT, agent TEXT, PRIMARY KEY (room, night))"


def open_session() -> Iterator[sqlite3.Connection]:
    """Open a connection for one call; commit if the handler returns, roll back if it fails."""
    connection = sqlite3.connect(FILE)
    try:
        connection.execute(TABLE)
        yield connection
        connection.commit()
    finally:
        connection.close()


Session = Annotated[sqlite3.Connection, Needs(open_session)]


class Desk:
    """What the handlers of this service share: a provider that needs another one."""

    def __init__(self, session: Session, context: Context) -> None:
        self.session = session
        self.agent = context.agent_id

    def book(self, room: str, night: str) -> None:
        try:
            self.session.execute("INSERT INTO stays VALUES (?, ?, ?)", (room, night, self.agent))
        except sqlite3.IntegrityError:
            raise Refusal("room_taken", f"Room {room} is taken on {night}.") from None


@app.endpoint("BOOK", "/room", impact="reversible", scopes=["rooms:book"])
def book_room(room: str, night: str, desk: Annotated[Desk, Needs(Desk)], session: Session) -> dict[str, int]:
    """Book a room for one night.

    Outcome: The room is booked, and the number of bookings is returned.

    Errors:
        room_taken: Somebody else has the room.
    """
    desk.book(room, night)
    return {"bookings": session.execute("SELECT count(*) FROM stays").fetchone()[0]}

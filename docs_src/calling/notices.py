from dataclasses import dataclass, field

from bespeak import App

app = App(
    "Notices",
    server_id="notices.example",
    operator="Harbour Hotel",
    contact="desk@hotel.example",
)


@dataclass
class Notice:
    text: str
    updated_at: str
    author: str | None = None
    floors: list[int] = field(default_factory=list)


@dataclass
class Board:
    notices: list[Notice]


@app.endpoint("QUERY", "/notices", impact="informational", since="notices[].updated_at")
def query_notices() -> Board:
    """Find the notices that hang at the front desk.

    Outcome: The notices are returned.
    """
    return Board(
        [Notice("The lift is repaired.", "2026-05-02T09:30:00Z"), Notice("Breakfast is from 07:00.", "2026-01-10")]
    )

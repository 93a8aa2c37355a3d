"""Take the pictures of docs/guides/console.md: six views of the example hotel in Chromium, PNG of at most 120 kB each.

Run it after the pages have changed, and look at every picture: `python tools/screenshots.py`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

import bespeak

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.chromium import browser  # noqa: E402 - the root is on the path from here on
from tests.pages import Console, served  # noqa: E402

FOLDER: Final = ROOT / "docs" / "guides" / "console"
MOST: Final = 120_000  # bytes of a picture
SIZE: Final = {"width": 1024, "height": 600}
ROOM: Final = {"guest_id": "0b6f0a3c-6b7a-4a55-9d3c-2f6f0f4f3a11", "room_id": "105", "arrival": "2027-03-01"}
STAY: Final = {**ROOM, "departure": "2027-03-04"}


def _docs(page: Any, console: Console) -> None:
    page.goto(f"{console.root}/docs/BOOK/room")


def _try(page: Any, console: Console) -> None:
    page.goto(f"{console.url}#/endpoint/BOOK/room?body={json.dumps(STAY)}&as=ann&scopes=booking:room")
    page.wait_for_selector(".endpoint[data-state=ready]")


def _exchange(page: Any, console: Console) -> None:
    page.goto(f"{console.url}#/endpoint/BOOK/room?body={json.dumps(STAY)}&as=ann&scopes=rooms:read")
    page.wait_for_selector(".endpoint[data-state=ready]")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#exchange[data-state=armed]")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#exchange[data-state=refused]")
    page.locator("#exchange").scroll_into_view_if_needed()


def _live(page: Any, console: Console) -> None:
    console.call(method="QUERY", path="/rooms")  # the first call is slow, which would set the scale of the chart
    page.goto(f"{console.url}#/live")
    page.wait_for_selector("[data-state=watching]")
    seen = 0
    for turn in range(16):
        for number in range(2 + turn * 5 % 7):
            console.call(method="QUERY", path="/rooms", input={"beds": 1 + number % 3}, **{"as": "ann"})
            seen += 1
        if turn % 3 == 0:
            console.call(method="RESERVE", path="/room", input=STAY)
            console.call(method="BOOK", path="/room", input=STAY, confirmed=True, **{"as": "ben"})
            seen += 2
        page.wait_for_timeout(700)
    page.wait_for_selector(f"[data-seen='{seen}']")


def _work(page: Any, console: Console) -> None:
    session = httpx.get(f"{console.url}api/session", headers={"Console-Token": console.token}).json()
    with bespeak.connect_sync(session["agtp"], agent_id="0a3f" * 16) as hotel:
        hotel.propose("FIND", "/rooms/cheap", given=["max_price:integer"], needs=["rooms[].room_id", "rooms[].price"])
    page.goto(f"{console.url}#/panels/proposals")
    page.locator("[data-action=show]").first.click()
    page.wait_for_selector("[data-block=graph]")
    page.locator("[data-block=graph]").scroll_into_view_if_needed()


def _contract(page: Any, console: Console) -> None:
    page.goto(f"{console.url}#/contract/faces")
    page.get_by_role("link", name="openapi").first.wait_for()


VIEWS: Final[dict[str, tuple[str, Callable[[Any, Console], None]]]] = {
    "docs": ("light", _docs),
    "try": ("light", _try),
    "exchange": ("dark", _exchange),
    "live": ("dark", _live),
    "work": ("light", _work),
    "contract": ("light", _contract),
}
"""Colour scheme and way to each view."""


def main(*names: str) -> int:
    """Take the named pictures, or all; return 1 if one is too large."""
    FOLDER.mkdir(exist_ok=True)
    large = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        browser() as chromium,
        served(ROOT / "examples" / "hotel", Path(folder) / "ledger.sqlite3") as link,
    ):
        console = Console(link, chromium)
        for name in names or VIEWS:
            scheme, show = VIEWS[name]
            place = FOLDER / f"{name}.png"
            with console.page(color_scheme=scheme, viewport=SIZE) as page:
                show(page, console)
                page.screenshot(path=place)
            size = place.stat().st_size
            large += size > MOST
            print(f"{place.relative_to(ROOT)}  {size:,} bytes{'  too large' if size > MOST else ''}")
    return int(large > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

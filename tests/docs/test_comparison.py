"""The same service in bespeak, FastAPI and FastMCP, as docs/explanation/side-by-side.md compares them."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import fastmcp
import pytest
from fastmcp.exceptions import ToolError
from starlette.testclient import TestClient
from tests.process import ROOT

import bespeak

FOLDER = ROOT / "docs_src" / "comparison"
BOOKING = {"day": "2030-05-06", "time": "09:00", "patient": "Kim"}
BOOKED = "2030-05-06 09:00 for Kim"

pytestmark = pytest.mark.anyio


def module(name: str) -> ModuleType:
    found = ModuleType(name)
    exec(compile((FOLDER / f"{name}.py").read_text("utf-8"), f"{name}.py", "exec", dont_inherit=True), found.__dict__)
    return found


async def test_bespeak_finds_books_and_refuses() -> None:
    async with bespeak.connect(module("with_bespeak").app, as_="ann", scopes=["slots:book"]) as clinic:
        assert await clinic.call("QUERY", "/slots", day="2030-05-06") == {"slots": ["09:00", "09:30"]}
        assert await clinic.call("BOOK", "/slots", **BOOKING) == {"booked": BOOKED}
        with pytest.raises(bespeak.BusinessError, match="slot_taken"):
            await clinic.call("BOOK", "/slots", **BOOKING)


def test_fastapi_finds_books_and_refuses() -> None:
    client = TestClient(module("with_fastapi").app)
    granted = {"Authorization": "Bearer slots:book"}
    assert client.get("/slots", params={"day": "2030-05-06"}).json() == {"slots": ["09:00", "09:30"]}
    assert client.post("/slots", json=BOOKING).status_code == 403
    assert client.post("/slots", json=BOOKING, headers=granted).json() == {"booked": BOOKED}
    assert client.post("/slots", json=BOOKING, headers=granted).status_code == 409


async def test_fastmcp_finds_and_refuses() -> None:
    async with fastmcp.Client(module("with_fastmcp").mcp) as client:
        assert (await client.call_tool("find_slots", {"day": "2030-05-06"})).data == ["09:00", "09:30"]
        with pytest.raises(ToolError, match="slots:book"):
            await client.call_tool("book_slot", BOOKING)


def test_the_page_counts_the_lines_of_the_files() -> None:
    page = (ROOT / "docs" / "explanation" / "side-by-side.md").read_text("utf-8")
    said = re.search(r"^\| lines \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert said is not None
    counted = [_lines(FOLDER / f"with_{name}.py") for name in ("bespeak", "fastapi", "fastmcp")]
    assert [int(number) for number in said.groups()] == counted


def _lines(path: Path) -> int:
    """Count the lines that are not empty."""
    return sum(bool(line.strip()) for line in path.read_text("utf-8").splitlines())

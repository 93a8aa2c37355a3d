"""The official conformance suite of MCP against our server, for both protocol eras."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.faces.mcp.fixtures import conforming
from tests.node import needs_node, run_program

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.process,
    needs_node,
    # Some fixtures are about what the modern revision deprecates.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
BASELINE = Path(__file__).with_name("conformance.yml")
EXPECTED = set(yaml.safe_load(BASELINE.read_text())["server"])


@pytest.mark.parametrize(("revision", "least"), [("2025-11-25", 81), ("2026-07-28", 164)])
async def test_the_suite_finds_nothing_but_what_is_expected(
    revision: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.faces.progress.INTERVAL", 0.01)
    async with conforming() as url:
        options = ("--url", url, "--requirements", revision, "-o", str(tmp_path))
        code, printed = await run_program("conformance", "server", *options, cwd=tmp_path)
    passed: list[str] = []
    failed: dict[str, list[str]] = {}
    for path in tmp_path.glob("*/checks.json"):
        scenario = re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT.*", r"\1", path.parent.name)
        found = msgspec.json.decode(path.read_bytes())
        passed += [check["id"] for check in found if check["status"] == "SUCCESS"]
        wrong = [f"{one['id']}: {one['errorMessage']}" for one in found if one["status"] in ("FAILURE", "WARNING")]
        if wrong or scenario in EXPECTED:
            failed[scenario] = wrong
    assert {name: wrong for name, wrong in failed.items() if name not in EXPECTED} == {}
    assert [name for name, wrong in failed.items() if not wrong] == [], "these need no entry in the baseline any more"
    assert code == 0, printed.decode()
    assert len(passed) >= least, "the suite ran fewer checks than it should"

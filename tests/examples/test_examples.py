"""The examples of the repository run as their pages say."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process import ROOT, bespeak, serving
from tests.service import Bench
from tests.stateful import StatefulBench

from bespeak import connect_sync
from bespeak.agent.client.errors import BusinessError
from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.state.store.settings import open_store
from bespeak.text.diagnostics.diagnostic import has_errors

TRAVEL = ROOT / "examples" / "travel"


PLACES = ["travel", *(f"travel/partners/{name}.py" for name in ("inn", "airline", "cars")), "semantic", "library"]


def told_in(page: str, heading: str) -> str:
    """Return what the examples print, as a page shows it."""
    section = (ROOT / "examples" / page).read_text("utf-8").split(f"# {heading}\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("place", PLACES)
def test_services_have_no_findings(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    target = load_target(str(ROOT / "examples" / place))
    findings = [*target.findings, *assemble(target.service, base=target.base).findings]
    for module in {"agency", "bookings", "endpoints", "clinic", "archive"} - before:
        sys.modules.pop(module, None)
    assert findings == []


@pytest.mark.process
def test_agency_tells_the_story_of_the_page_from_a_fresh_copy(tmp_path: Path) -> None:
    assert bespeak("init", "agency", "--example", "travel", cwd=tmp_path).returncode == 0
    assert bespeak("lint", "agency", cwd=tmp_path).stdout.endswith("nothing found.\n")
    command = [sys.executable, "-W", "error", "agency/trip.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    told = told_in("README.md", "A travel agency")
    assert re.fullmatch(re.escape(told).replace(re.escape("..."), ".*"), done.stdout), done.stdout
    left = {path.name for path in (tmp_path / "agency").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert left == {path.name for path in TRAVEL.rglob("*") if path.suffix in (".py", ".toml")}


@pytest.mark.process
def test_archive_imports_searches_analyses_and_reports_as_the_page_says() -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "library" / "donation.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", told_in("library/README.md", "A small archive"))


EXAMPLE = ROOT / "examples" / "semantic"

TOLD = """\
The radiology department looks for radiology-report-summary.
  The clinic offers note-summarize at SUMMARIZE /note, mapped: 0.91.
  Both agree on the profile of task t-1038: mapped.
  Summary: No sign of relapse. The clinic understood note-summarize.

What does LLM mean?
  In cs:ComputerScience: large language model.
  In law:Law: Master of Laws.
  In cs:ComputerScience with the sense law:MasterOfLaws: reject, termBinding sense conflicts with domain.
"""


@pytest.mark.process
@pytest.mark.requirement("IOA-7.1-3", "IOA-8-2", "IOA-9-1", "IOA-11.3-1")
def test_domains_with_different_words_understand_each_other() -> None:
    command = [sys.executable, str(EXAMPLE / "story.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", TOLD)


def test_readme_tells_the_same_story() -> None:
    assert TOLD in (ROOT / "examples" / "README.md").read_text("utf-8")


RESTAURANT = ROOT / "examples" / "restaurant"
MENU = RESTAURANT / "menu.agis"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    target = load_target(str(MENU))
    assert target.findings == []
    assembled = assemble(target.service, base=target.base)
    assert assembled.findings == []
    yield Bench(assembled)
    sys.modules.pop("handlers", None)


@pytest.mark.anyio
async def test_a_party_reserves_is_seated_and_leaves_as_the_document_says(bench: Bench) -> None:
    send = StatefulBench(bench, open_store("memory", role="sole")).send
    [dish] = (await send("FIND", "/dish", {"course": "dessert"})).json["dishes"]
    assert dish["name"] == "Tiramisu"
    given = {"name": "Ann", "guests": 8, "evening": "2026-12-01"}
    reserved = await send("RESERVE", "/table", given)
    assert reserved.status == 200
    assert (await send("RESERVE", "/table", given)).error["code"] == "fully_booked"
    at = f"/reservation/{reserved.json['reservation_id']}"
    for headers in ({}, {"method_grammar": "AGIS/1.0"}):
        assert (await send("SEAT", at, **headers)).json == reserved.json
    assert (await send("CANCEL", at)).json == reserved.json
    assert (await send("SEAT", at)).error["code"] == "reservation_unknown"
    reply = await send("RESERVE", "/table", {"name": "", "guests": 9, "evening": "soon", "dog": True})
    assert (reply.status, len(reply.error["violations"])) == (422, 4)


def test_root_returns_a_document_without_findings(bench: Bench) -> None:
    body = bench.send("DISCOVER", "/", accept="application/agis").response.body.decode()
    checked = check_text(body, "root.agis", LintContext(catalog=load_bundled()))
    assert not has_errors(checked.findings), checked.findings
    written = check_text(MENU.read_text(), "menu.agis", LintContext(catalog=load_bundled()))
    assert written.findings == ()
    told, meant = checked.subject.agis, written.subject.agis
    assert (told.service, told.agtp, told.vocabulary) == (meant.service, meant.agtp, meant.vocabulary)
    assert {entry.endpoint.key for entry in told.endpoints} == {entry.endpoint.key for entry in meant.endpoints}


@pytest.mark.process
@pytest.mark.parametrize("target", [RESTAURANT, MENU], ids=["folder", "document"])
def test_folder_and_document_can_be_served(target: Path) -> None:
    with serving(target) as server:
        assert "4 endpoints" in server.announcement
        with connect_sync(server.uri) as service:
            assert service.call("FIND", "/dish", course="main")["dishes"]
            with pytest.raises(BusinessError):
                service.call("CANCEL", "/reservation/R-0")
        assert bespeak("conform", server.uri).returncode == 0
        assert server.stop(signal.SIGTERM) == 0

"""The draft's story: two domains find each other through an alignment, and one word with two senses is told apart."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.process import ROOT

from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target

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


def test_service_has_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    target = load_target(str(EXAMPLE))
    sys.modules.pop("clinic", None)
    assert [*target.findings, *assemble(target.service, base=target.base).findings] == []


@pytest.mark.process
@pytest.mark.requirement("IOA-7.1-3", "IOA-8-2", "IOA-9-1", "IOA-11.3-1")
def test_domains_with_different_words_understand_each_other() -> None:
    command = [sys.executable, str(EXAMPLE / "story.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == TOLD


def test_readme_tells_the_same_story() -> None:
    assert TOLD in (ROOT / "examples" / "README.md").read_text("utf-8")

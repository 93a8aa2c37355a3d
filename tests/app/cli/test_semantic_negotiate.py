"""`bespeak semantic negotiate` prints the outcome with its explanation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.meaning import FOLDER, RAD_PROFILE

from bespeak.app.cli.main import bespeak
from bespeak.terminal import CommandFailedError

Run = Callable[..., Result]

SERVICE = FOLDER.parent
CLINICAL, RADIOLOGY, MAPPING = (
    str(FOLDER / name) for name in ("clinical.ttl", "radiology.ttl", "radiology-clinical.json")
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def invoke(target: str, document: Any, *args: str) -> Result:
        Path("profile.json").write_text(document if isinstance(document, str) else json.dumps(document))
        return CliRunner().invoke(bespeak, ["semantic", "negotiate", target, "profile.json", *args])

    return invoke


def test_ontology_and_alignment_in_files_make_a_match(run: Run) -> None:
    done = run(CLINICAL, RAD_PROFILE, "--ontology", RADIOLOGY, "--alignment", MAPPING)
    assert done.exit_code == 0, done.output
    first, *explanation = done.stdout.splitlines()
    assert first == "mapped, confidence 0.91"
    assert any("report-summary means" in text for text in explanation)


def test_message_around_the_envelope_is_opened_and_the_exit_code_tells_that_nothing_matches(run: Run) -> None:
    done = run(RADIOLOGY, {"header": {}, "semantic": RAD_PROFILE, "payload": {}}, "--json")
    assert (done.exit_code, json.loads(done.stdout)["match"]) == (0, "direct")
    done = run(CLINICAL, RAD_PROFILE)
    assert done.exit_code == 1
    assert done.stdout.startswith("none (renegotiate)\n")


def test_files_that_cannot_be_used_are_named(run: Run) -> None:
    done = run(CLINICAL, "{")
    assert isinstance(done.exception, CommandFailedError)
    Path("broken.ttl").write_text("<x:a> <x:p>")
    assert isinstance(run("broken.ttl", RAD_PROFILE).exception, CommandFailedError)
    Path("broken.json").write_text("{}")
    assert isinstance(run(CLINICAL, RAD_PROFILE, "--alignment", "broken.json").exception, CommandFailedError)
    done = run("agtp://127.0.0.1", RAD_PROFILE, "--alignment", MAPPING)
    assert done.exit_code == 2


def test_service_is_asked_with_describe(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "x.example"\noperator = "X"\ncontact = "x@x.example"\n[semantic]\n'
    )
    done = run(str(tmp_path), RAD_PROFILE, "--json")
    assert done.exit_code == 1, done.output
    assert json.loads(done.stdout)["violations"][0]["rule"] == "I241"
    missing = run(str(tmp_path), RAD_PROFILE, "--endpoint", "BOOK /room")
    assert missing.exit_code == 1
    assert "endpoint-not-found" in missing.stderr

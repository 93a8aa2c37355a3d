"""`bespeak semantic register` takes contexts, which envelopes may name then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.meaning import RAD, RAD_PROFILE

from bespeak.app.cli.main import bespeak
from bespeak.extensions.semantics.layer import SemanticLayer
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.state.store.store import Store
from bespeak.terminal import CommandFailedError
from bespeak.terminal.target_store import use_store

Run = Callable[..., Result]

CONTEXT = "https://x.org/ctx/rad"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def invoke(document: Any, *args: str) -> Result:
        Path("context.json").write_text(json.dumps(document))
        command = ["semantic", "register", "context.json", "--store", "x.db", "--by", "ada", *args]
        return CliRunner().invoke(bespeak, command)

    return invoke


def test_envelope_may_name_a_registered_context(run: Run) -> None:
    done = run({"@context": ["https://ex.org/ctx", {"rad": f"{RAD}#"}]}, "--id", CONTEXT, "--version", "1.0")
    assert done.exit_code == 0, done.output

    async def read(store: Store) -> Any:
        layer = SemanticLayer(SemanticSettings())
        await layer.follow(store)
        profile, _ = layer.read({**RAD_PROFILE, "@context": CONTEXT})
        await layer.close()
        return profile

    profile = asyncio.run(use_store("x.db", read))
    assert profile.capability_refs == (f"{RAD}#report-summary",)


def test_context_needs_a_name_and_must_not_lead_elsewhere(run: Run) -> None:
    for document, args in (
        ({"@context": {"rad": f"{RAD}#"}}, ()),
        ({"@context": {"rad": f"{RAD}#"}}, ("--id", CONTEXT, "--version", "draft")),
        ({"@context": "https://evil.example/ctx"}, ("--id", CONTEXT, "--version", "1.0")),
        ({"@context": {"@type": "x"}}, ("--id", CONTEXT, "--version", "1.0")),
    ):
        assert isinstance(run(document, *args).exception, CommandFailedError), document

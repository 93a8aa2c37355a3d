"""Extensions: what the kernel makes of them, and one that an author writes."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from click.testing import CliRunner
from tests.cases import rows
from tests.service import AGENT, build
from tests.stateful import StatefulBench, keeping

from bespeak.app.cli.main import bespeak
from bespeak.contract.extensions import BUNDLED
from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.errors import ConfigError
from bespeak.runtime.background import DueHandler
from bespeak.runtime.extension import (
    Anchor,
    Extension,
    Gate,
    Opening,
    RecordKind,
    check_names,
    gates_behind,
    read_settings,
)
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import PutRecord, Record
from bespeak.state.store.store import Store
from bespeak.terminal import CommandFailedError
from bespeak.terminal.target_store import use_store

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
MODULE = runpy.run_path(str(ROOT / "docs_src" / "extensions" / "reminders.py"))
REMINDERS: Extension = MODULE["reminders"]


def reminding(document: ServerDocument | None = None) -> Any:
    return keeping(extensions=(REMINDERS,), methods=("CANCEL", "CHECK"), document=document)


async def remind(bench: StatefulBench, seconds: float) -> str:
    reply = await bench.send("REMIND", "/", {"text": "tea", "seconds": seconds})
    assert reply.status == 200, reply.json
    return str(reply.json["result"]["reminder_id"])


async def test_a_record_of_an_extension_falls_due(capsys: pytest.CaptureFixture[str]) -> None:
    async with reminding() as bench:
        reminder_id = await remind(bench, 0.05)
        async with asyncio.timeout(10):
            while (await bench.send("CHECK", "/", {"target": reminder_id})).json["result"]["status"] != "shown":
                await asyncio.sleep(0.01)
    assert capsys.readouterr().out == "REMINDER: tea\n"


async def test_its_owner_cancels_a_record_of_an_extension() -> None:
    async with reminding() as bench:
        reminder_id = await remind(bench, 600)
        assert (await bench.send("CANCEL", "/", {"target_id": reminder_id})).json["result"]["status"] == "cancelled"


async def test_an_own_method_that_the_catalog_lacks_is_a_custom_one() -> None:
    (method, handler), *_ = REMINDERS.own_methods
    glazing = replace(REMINDERS, own_methods=[(method, handler), (replace(method, name="GLAZE"), handler)])
    async with keeping(extensions=(glazing,)) as bench:
        routes = bench.bench.routes
        assert routes.policies.methods.custom == ("GLAZE",)
        listed = {endpoint.key for endpoint in routes.endpoints.values() if endpoint.is_listed}
        assert listed == {("REMIND", "/"), ("GLAZE", "/")}
        assert (await bench.send("GLAZE", "/", {"text": "tea", "seconds": 1})).status == 200


async def test_settings_are_read_from_a_table_of_its_own() -> None:
    document, findings = parse_server("[extensions.reminders]\nlongest = 5.0\n", "bespeak.toml")
    assert findings == []
    async with reminding(document) as bench:
        assert (await bench.send("REMIND", "/", {"text": "tea", "seconds": 6})).refusal == (422, "too-late")


@rows(
    "given, expected",
    ({"reminders": {"longest": "soon"}}, "[extensions.reminders] is not valid: Expected `float`, got `str`"),
    ({"reminders": {"shortest": 1}}, "[extensions.reminders] is not valid: Object contains unknown field"),
    ({"remainders": {}}, "[extensions.remainders] is not read: the service has no extension 'remainders'"),
)
def test_wrong_settings_are_refused(given: dict[str, dict[str, Any]], expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_settings((REMINDERS,), given)
    assert str(raised.value).startswith(expected)


@rows(
    "second, what",
    (Extension(name="reminders"), "extension 'reminders'"),
    (Extension(name="b", kinds=REMINDERS.kinds), "kind of record 'reminder'"),
    (Extension(name="b", methods={"REMIND": lambda _: None}), "method 'REMIND'"),
    ids=["extension", "kind", "method"],
)
def test_two_extensions_with_the_same_name_for_something_are_refused(second: Extension, what: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_names((REMINDERS, second))
    assert str(raised.value) == f"the extensions 'reminders' and {second.name!r} both name the {what}"


async def test_an_extension_starts_and_closes_without_a_store() -> None:
    seen: list[str] = []

    def open_it(opening: Opening) -> None:
        opening.on_start(lambda: seen.append("start"))
        opening.on_close(lambda: seen.append("close"))

    bench = build(extensions=(Extension(name="a", open=open_it),))
    await bench.server.start()
    await bench.server.close()
    assert seen == ["start", "close"]


async def test_a_closing_step_that_fails_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    def fail() -> None:
        raise RuntimeError("no")

    def open_it(opening: Opening) -> None:
        for step in (lambda: seen.append("first"), fail, fail, lambda: seen.append("last")):
            opening.on_close(step)

    server = build(extensions=(Extension(name="a", open=open_it),)).server
    closed: list[str] = []
    server.additions.close = AsyncMock(side_effect=lambda: closed.append("additions"))  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="no"):
        await server.close()
    assert (seen, closed) == (["last", "first"], ["additions"])
    assert caplog.messages == ["another step of closing the server failed"]


async def test_records_of_an_extension_without_methods_fall_due() -> None:
    due = asyncio.Event()

    def carry_out(_: Server) -> DueHandler:
        async def carry(records: Sequence[Record]) -> None:
            due.set()

        return carry

    async with keeping(extensions=(Extension(name="a", kinds={"egg": RecordKind(due=carry_out)}),)) as bench:
        await bench.store.do(PutRecord("egg-1", "egg", AGENT, "waiting", "{}", delay=0.0))
        async with asyncio.timeout(10):
            await due.wait()


def test_gates_stand_behind_their_anchor_in_the_order_of_the_extensions() -> None:
    first, second, other = (Gate(lambda _: None, anchor) for anchor in (Anchor.READ, Anchor.READ, Anchor.AUTHORIZED))
    absent = Gate(lambda _: None, Anchor.READ, methods=frozenset({"PURCHASE"}))
    extensions = (Extension(name="a", gates=(first, other, absent)), Extension(name="b", gates=(second,)))
    assert gates_behind(extensions, Anchor.READ, ("LOG",)) == [first, second]
    assert gates_behind(extensions, Anchor.READ, ("PURCHASE",)) == [first, absent, second]


def test_an_own_method_makes_the_server_load_no_standard_ones() -> None:
    assert [extension.name for extension in build(extensions=(REMINDERS,)).server.extensions] == [
        "workflows",
        "reminders",
    ]


async def test_the_meaning_of_a_call_is_judged_before_a_purchase() -> None:
    names = [known.name for known in BUNDLED]
    assert names.index("semantics") < names.index("payments")


@pytest.mark.process
def test_a_server_without_standard_methods_loads_no_extension_that_it_does_not_need() -> None:
    code = """
import sys
from bespeak.app.server.assembly import Keeper, assemble
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.store.settings import open_store
import runpy
app = runpy.run_path("docs_src/readme/rooms.py")["app"]
Keeper(assemble(app.service()), open_store("memory", role="sole"), ServerDocument())
print(*{name.split(".")[2] for name in sys.modules if name.startswith("bespeak.extensions.")})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) == {"workflows"}


def test_a_command_of_an_extension_reads_the_store_of_its_target(tmp_path: Path) -> None:
    target = tmp_path / "reminders.py"
    target.write_text((ROOT / "docs_src" / "extensions" / "reminders.py").read_text("utf-8"))

    async def put(store: Store) -> None:
        await store.do(PutRecord("rem-1", "reminder", "ada", "waiting", "tea"))

    asyncio.run(use_store(str(tmp_path / "bespeak.db"), put, role="sole"))
    runner = CliRunner()
    assert runner.invoke(bespeak, ["extension", str(target), "list"]).output == "waiting  tea\n"
    assert "list  List the reminders in the store." in runner.invoke(bespeak, ["extension", str(target)]).output


def test_a_target_without_commands_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "plain.py"
    identity = 'server_id="plain.example", operator="Acme", contact="ops@plain.example"'
    target.write_text(f'from bespeak import App\n\napp = App("Plain", {identity})\n')
    refused = CliRunner().invoke(bespeak, ["extension", str(target), "list"])
    assert isinstance(refused.exception, CommandFailedError)
    assert str(refused.exception).endswith("has commands; see `App(extensions=[...])`")

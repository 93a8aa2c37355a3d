"""IMPORT of large sources (Tier 2 6.4): in the background, in batches, from a text, a file or an address."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.discovery.web import always, authority_file, in_turn, redirect, send, serving
from tests.documents.test_table_files import number, row, text, write_xlsx
from tests.extensions.acquire.test_methods import code, good
from tests.extensions.integrate.test_jobs import look, until_dropped
from tests.extensions.messages.conftest import place, shared_place
from tests.process import serving as serving_process
from tests.service import AGENT
from tests.stateful import StatefulBench, audited_backend, do_at, keeping

import bespeak
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.documents.table_files import write_parquet
from bespeak.extensions.files.store import FileStore
from bespeak.extensions.integrate import jobs, methods
from bespeak.extensions.integrate.extension import WORKS
from bespeak.extensions.integrate.jobs import Job, Steps
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.functions.files import Upload
from bespeak.state.store.commands.records import ChangeRecord
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place", "shared_place"]
SERVICE: dict[str, Any] = {"methods": ("IMPORT", "FETCH", "SEARCH", "SCAN", "CHECK", "CANCEL")}


def table(rows: int, start: int = 0) -> str:
    return "id,name\n" + "".join(f"{number},name {number}\n" for number in range(start, start + rows))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take 20 rows for many, so that few show what many do."""
    monkeypatch.setattr(methods, "MOST_PUT", 20)
    monkeypatch.setattr(methods, "_BATCH", 10)


async def begun(bench: StatefulBench, **given: Any) -> str:
    reply = await bench.send("IMPORT", "/", {"target": "people", "format": "csv", **given}, task_id="task-9")
    assert reply.status == 202, reply.json
    assert reply.json["result"]["status"] == "queued"
    return str(reply.json["result"]["import_id"])


async def imported(bench: StatefulBench, **given: Any) -> dict[str, Any]:
    """Import in the background; return the receipt."""
    found = await look(bench, await begun(bench, **given))
    assert found["status"] == "done", found
    receipt: dict[str, Any] = found["details"]["result"]
    return receipt


async def failed(bench: StatefulBench, **given: Any) -> dict[str, Any]:
    found = await look(bench, await begun(bench, **given))
    assert found["status"] == "failed", found
    details: dict[str, Any] = found["details"]
    return details


@pytest.mark.requirement("METHODS-6.4-3", "METHODS-6.4-5")
async def test_a_large_text_is_imported_in_the_background_and_its_receipt_found_by_the_task_id(place: str) -> None:
    store = open_store(place, role="sole")
    try:
        async with keeping(**SERVICE, store=store) as bench:
            source = table(25) + "x\n" + '26,"a ""b"",\nc"\n27,na"me\n'
            import_id = await begun(bench, source=source, key="id")
            found = await look(bench, "task-9")
            receipt = found["details"]["result"]
            assert (receipt["import_id"], receipt["records"], receipt["added"]) == (import_id, 28, 26)
            assert [one["line"] for one in receipt["rejected"]] == [27, 30]
            assert found["details"]["progress"] == {"done": len(source), "total": len(source), "unit": "bytes"}
            assert (await good(bench, "FETCH", resource_id="people/26"))["content"]["name"] == 'a "b",\nc'
            await until_dropped(store, import_id)
            again = await imported(bench, source=table(30), key="id", conflict_policy="skip")
            assert (again["added"], again["skipped"]) == (4, 26)
    finally:
        await store.close()


async def test_an_import_that_is_interrupted_goes_on_behind_the_last_batch(shared_place: str) -> None:
    held, reached = asyncio.Event(), asyncio.Event()

    async def stuck(call: RoutedCall, job: Job) -> Steps:
        at = 0
        async for step in methods.carry_import(call, job):
            if at == 2 and not reached.is_set():
                reached.set()
                await held.wait()
            at += 1
            yield step

    first, second = open_store(shared_place), open_store(shared_place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "_AT_ONCE", 1)
        patch.setitem(WORKS, "IMPORT", stuck)  # type: ignore[arg-type]
        try:
            async with keeping(**SERVICE, store=first) as bench, keeping(**SERVICE, store=second) as other:
                import_id = await begun(bench, source=table(45))
                await reached.wait()
                counts = (await look(bench, import_id, "running"))["details"]["counts"]
                assert (counts["records"], counts["added"]) == (20, 20)
                await first.do(ChangeRecord(import_id, ("job",), ("running",), "running", delay=0.0))
                assert (await look(other, import_id))["details"]["result"]["added"] == 45
                held.set()
                rows = (await good(bench, "SCAN", collection="people", page_size=100))["items"]
                assert sorted(int(row["id"]) for row in rows) == list(range(45))
        finally:
            await first.close()
            await second.close()


@pytest.mark.process
def test_an_import_is_complete_and_not_doubled_after_kill_9(tmp_path: Path) -> None:
    store = str(tmp_path / "state.db")
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "data.example"\noperator = "Acme"\ncontact = "ops@data.example"\n'
        '[methods]\nenable = ["IMPORT", "SCAN", "CHECK"]\n'
    )

    async def begin(uri: str) -> str:
        async with bespeak.connect(uri, agent_id=AGENT) as service:
            told = await service.call("IMPORT", "/", source=table(40_000), target="people", format="csv")
            async with asyncio.timeout(20):
                while True:
                    found = await service.call("CHECK", "/", target=told["import_id"])
                    if found["details"]["progress"]["done"]:
                        assert found["status"] == "running", "the test kills it in the middle"
                        return str(told["import_id"])

    async def end(uri: str, import_id: str) -> Any:
        async with bespeak.connect(uri, agent_id=AGENT) as service, asyncio.timeout(60):
            while (found := await service.call("CHECK", "/", target=import_id))["status"] != "done":
                await asyncio.sleep(0.05)
            return found["details"]["result"]

    with serving_process(tmp_path, "--store", store) as served:
        import_id = asyncio.run(begin(served.uri))
        served.stop(signal.SIGKILL)
    do_at(Path(store), ChangeRecord(import_id, ("job",), ("running",), "running", delay=0.0))  # its lease ends
    with serving_process(tmp_path, "--store", store) as served:
        receipt = asyncio.run(end(served.uri, import_id))
    assert (receipt["records"], receipt["added"], receipt["changed"]) == (40_000, 40_000, 0)


async def test_files_are_imported_inline_and_by_the_id_under_which_they_were_stored() -> None:
    async with keeping(**SERVICE) as bench:
        content = base64.b64encode(table(3).encode()).decode()
        told = await good(bench, "IMPORT", source={"data": content}, target="people", format="csv", key="id")
        assert (told["status"], told["added"]) == ("done", 3)
        files = bench.bench.server.part("files")
        assert isinstance(files, FileStore)
        kept = files.keep(AGENT, Upload(table(30).encode(), name="people.csv"))
        receipt = await imported(bench, source={"file": kept.reference}, key="id")
        assert (receipt["added"], receipt["skipped"]) == (27, 3)
        given = {"source": {"file": "A" * 32}, "target": "people", "format": "csv"}
        assert (await bench.send("IMPORT", "/", given)).refusal == (422, "input-validation-failed")


@asynccontextmanager
async def fetching(allow: tuple[str, ...] = ("127.0.0.1",)) -> AsyncIterator[StatefulBench]:
    with authority_file() as ca_file:
        document = ServerDocument(extension_tables={"delivery": DeliverySettings(allow=allow, ca_file=ca_file)})
        async with keeping(**SERVICE, document=document) as bench:
            yield bench


@pytest.mark.requirement("METHODS-6.4-3")
async def test_an_address_is_fetched_in_the_background_and_tried_again_if_its_server_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "_FIRST_DELAY", 0.0)
    script = in_turn(always(503), redirect("/rows.csv"), always(200, table(30).encode()))
    async with fetching() as bench, serving(script) as web:
        receipt = await imported(bench, source=f"https://127.0.0.1:{web.port}/first", key="id")
        assert (receipt["added"], web.targets) == (30, ["/first", "/first", "/rows.csv"])


async def test_what_must_not_be_fetched_fails_with_the_reason() -> None:
    endless = redirect("/again")
    zipped = always(200, b"x", content_encoding="gzip")
    scripts = {"/again": endless, "/zip": zipped, "/gone": always(404)}

    def script(asked: Any, writer: asyncio.StreamWriter) -> Any:
        return scripts[asked.target](asked, writer) if asked.target in scripts else send(writer, 200, b"x" * 400)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "MOST_SOURCE", 300)
        async with fetching() as bench, serving(script) as web:
            cases = {"/again": "redirected", "/zip": "encoding", "/gone": "404", "/large": "at most"}
            for target, message in cases.items():
                error = (await failed(bench, source=f"https://127.0.0.1:{web.port}{target}"))["error"]
                assert (error["code"], message in error["message"]) == ("invalid-source", True), error
        async with fetching(allow=()) as bench, serving(script) as web:
            error = (await failed(bench, source=f"https://127.0.0.1:{web.port}/"))["error"]
            assert (error["code"], "not public" in error["message"]) == ("invalid-source", True)
            given = {"source": "http://127.0.0.1/", "target": "people", "format": "csv"}
            assert await code(bench, "IMPORT", **given) == (400, "invalid-source")


async def test_a_column_with_a_type_rejects_rows_with_another_one() -> None:
    async with keeping(**SERVICE) as bench:
        columns = {"n": "integer", "x": "number", "ok": "boolean", "id": "string"}
        text = "id,n,x,ok\n01,7,1.50,true\n2,,,\n3,7.0,1,true\n4,1,1e999,true\n5,1,1,yes\n6,007,1,true\n"
        given: dict[str, Any] = {"target": "typed", "key": "id", "columns": columns}
        told = await good(bench, "IMPORT", source=text, format="csv", **given)
        assert (told["added"], [one["line"] for one in told["rejected"]]) == (2, [4, 5, 6, 7])
        first = (await good(bench, "FETCH", resource_id="typed/01"))["content"]
        assert first == {"id": "01", "n": 7, "x": 1.5, "ok": True}
        assert (await good(bench, "FETCH", resource_id="typed/2"))["content"]["n"] is None
        told = await good(bench, "IMPORT", source=[{"id": "7", "n": True}, {"id": "8", "n": 1}], **given)
        assert [one["row"] for one in told["rejected"]] == [0]


async def test_what_is_wrong_far_inside_a_source_ends_the_job_and_tells_what_was_committed() -> None:
    async with keeping(**SERVICE) as bench:
        cases = {
            "csv": table(25) + '30,"open\n' + table(20),
            "json": json.dumps([{"id": number} for number in range(25)])[:-1] + "}",
        }
        for form, source in cases.items():
            found = await failed(bench, source=source, format=form)
            assert (found["error"]["code"], found["counts"]["added"]) == ("invalid-source", 20)
        found = await failed(bench, source="a,b\n" + "x\n" * 30)
        assert found["error"]["code"] == "nothing-to-import"
        assert len(found["error"]["details"]["rejected"]) == 30
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(methods, "MOST_RESOURCES", 55)
            found = await failed(bench, source=table(30))
            assert (found["error"]["code"], found["counts"]["added"]) == ("too-many-resources", 10)


async def test_tables_of_other_programs_are_imported(tmp_path: Path) -> None:
    sheet = row(text("id"), text("n")) + "".join(row(text(str(at)), number(at)) for at in range(25))
    files = {"xlsx": write_xlsx(tmp_path / "a.xlsx", sheet).read_bytes()}
    files["parquet"] = write_parquet([{"id": str(at), "n": at} for at in range(25)])
    async with keeping(**SERVICE) as bench:
        for form, content in files.items():
            source = {"data": base64.b64encode(content).decode()}
            receipt = await imported(bench, source=source, format=form, key="id", target=form)
            assert (receipt["added"], receipt["target"]) == (25, form)
            assert (await good(bench, "FETCH", resource_id=f"{form}/24"))["content"] == {"id": "24", "n": 24}


async def test_every_format_is_imported_in_batches() -> None:
    records = [{"id": str(number), "name": f"name {number}"} for number in range(25)]
    texts = {
        "json": json.dumps(records),
        "jsonl": "".join(json.dumps(one) + "\n" for one in records),
        "yaml": json.dumps(records),
        "csv": table(25),
    }
    async with keeping(**SERVICE) as bench:
        for number, (form, text) in enumerate(texts.items()):
            receipt = await imported(bench, source=text, format=form, key="id")
            assert (receipt["added"], receipt["skipped"]) == ((25, 0) if not number else (0, 25)), form
        assert (await imported(bench, source=records, format="json", key="id"))["skipped"] == 25

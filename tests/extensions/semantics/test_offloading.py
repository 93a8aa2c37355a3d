"""Work beside the event loop: the same result, wherever it is done."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import msgspec
import pytest
from tests.meaning import RAD, registrations
from tests.stateful import StatefulBench, keeping

from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.extensions.semantics import offloading
from bespeak.extensions.semantics.knowledge import read_artifact
from bespeak.extensions.semantics.methods_ontologies import REGISTER_SCOPE
from bespeak.extensions.semantics.offloading import SMALL, run_beside, run_in_thread
from bespeak.state.store.commands.semantics import Artifact, ArtifactRow, decompress

pytestmark = pytest.mark.anyio

HEAD = """
@prefix ioa: <https://ex.org/ioa/semantic#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix b: <https://big.example/{number}#> .
<https://big.example/{number}> a owl:Ontology ; owl:versionInfo "1.0" .
"""


def big(number: int = 0) -> str:
    """Return an ontology that is too big for a thread."""
    terms = "\n".join(f"b:capability{one} a ioa:Capability ." for one in range(1_500))
    text = HEAD.format(number=number) + terms
    assert len(text) > SMALL
    return text


def artifact() -> Artifact:
    command = next(one for one in registrations() if one.id == RAD)
    row = ArtifactRow("ontology", command.id, command.version, command.digest, (), "", "", "", "", "", 1, 0.0)
    return Artifact(row, decompress(command.content))


@pytest.mark.process
async def test_ontology_from_a_process_is_that_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offloading, "_PART", 2)
    found = await run_beside(read_artifact, artifact(), size=SMALL + 1)
    assert isinstance(found, Ontology)
    assert found == await run_beside(read_artifact, artifact(), size=SMALL) == read_artifact(artifact())
    assert len(found.terms) > 2


@pytest.mark.process
async def test_process_that_fails_or_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChildProcessError, match="ended without a result"):
        await run_beside(os._exit, 7, size=SMALL + 1)
    monkeypatch.setattr(offloading, "_DEADLINE", 0.01)
    with pytest.raises(ChildProcessError, match=r"took longer than 0\.01 s"):
        await run_beside(time.sleep, 60, size=SMALL + 1)


@pytest.mark.process
async def test_cancelled_work_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    run = offloading._Child.run

    def note(child: offloading._Child) -> bytes | None:
        told = run(child)
        ended.append(0)
        return told

    monkeypatch.setattr(offloading._Child, "run", note)
    for turns in (1, 200):  # before the process has started, perhaps, and after
        work = asyncio.create_task(run_beside(time.sleep, 600, size=SMALL + 1))
        for _ in range(turns):
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    async with asyncio.timeout(30):
        while len(ended) < 2:
            await asyncio.sleep(0.01)


async def test_interpreter_is_handed_over_more_often_while_threads_work() -> None:
    before = sys.getswitchinterval()
    during = await asyncio.gather(*(run_in_thread(sys.getswitchinterval) for _ in range(3)))
    assert max(during) < before / 2
    assert sys.getswitchinterval() == before
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 / 0)
    assert sys.getswitchinterval() == before


async def offer(bench: StatefulBench, text: str, agent: str) -> Any:
    body = {"document": text, "media_type": "text/turtle"}
    return await bench.send("REGISTER", "/ontologies", body, agent=agent, authority_scope=REGISTER_SCOPE)


@pytest.mark.process
async def test_agents_register_big_ontologies_in_rotation_and_calls_go_on() -> None:
    greedy, other = "a" * 64, "b" * 64
    done: list[str] = []
    async with keeping(semantic=SemanticSettings(registry=True)) as bench:

        async def register(number: int, agent: str) -> None:
            reply = await offer(bench, big(number), agent)
            assert reply.status == 200, reply.json
            done.append(agent)

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(register(number, greedy))
            await asyncio.sleep(0)
            group.create_task(register(9, other))
            await asyncio.sleep(0)
            assert (await bench.send("DISCOVER", "/methods")).status == 200
            assert done == []  # nobody waits for documents that are being judged
        assert done.index(other) <= 2
        await bench.bench.server.part("semantic").knowledge.refresh()
        assert len(bench.bench.server.part("semantic").knowledge.snapshot.ontologies) == 6


async def test_documents_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.semantics.registry._MOST_OF_ONE", 1)
    async with keeping(semantic=SemanticSettings(registry=True)) as bench:
        small = [HEAD.format(number=number) + "b:x a ioa:Capability ." for number in range(4)]
        found = await asyncio.gather(*(offer(bench, text, "a" * 64) for text in small))
        statuses = sorted(one.status for one in found)
        assert statuses == [200, 200, 503, 503]
        refused = next(one for one in found if one.status == 503)
        assert (refused.error["code"], refused.header("Retry-After")) == ("too-many-waiting", "5")
        assert msgspec.json.encode(refused.error)

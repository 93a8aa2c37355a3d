"""The trail in a store, page by page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.cases import rows
from tests.state.audit.trails import ANN, BOB, append, exported, faults_of_lines, make_checkpointer, make_sealer

from bespeak.errors import ConfigError
from bespeak.state.audit.trail import FORM, FileTrail, StoreTrail, export_lines
from bespeak.state.store.commands.audit import ScanCheckpoints
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def test_records_are_read_in_order_for_any_page_size(store: Store) -> None:
    sealer = make_sealer()
    store.attach(sealer)
    written = [record.audit_id for record in await append(store, [ANN, BOB, "", ANN, BOB])]
    checkpoints = await make_checkpointer(store, sealer).write()
    for page in (1, 2, 5, 100):
        trail = StoreTrail(store, page=page)
        assert [record.audit_id async for record in trail.records()] == written
        assert [checkpoint.checkpoint_id async for checkpoint in trail.checkpoints()] == checkpoints


async def test_records_and_checkpoints_are_found_by_their_ids(store: Store) -> None:
    sealer = make_sealer()
    store.attach(sealer)
    [record] = await append(store, [ANN])
    [checkpoint_id] = await make_checkpointer(store, sealer).write()
    trail = StoreTrail(store)
    found, checkpoint = await trail.find(record.audit_id), await trail.find_checkpoint(checkpoint_id)
    assert found is not None
    assert checkpoint is not None
    assert (found.agent_id, found.jws) == (ANN, record.jws)
    assert await trail.find("0" * 64) is None
    assert await trail.find_checkpoint("0" * 64) is None
    assert await trail.agents() == 1


async def test_export_is_complete_and_verifies_elsewhere(store: Store, tmp_path: Path) -> None:
    sealer = make_sealer()
    store.attach(sealer)
    await append(store, [ANN, BOB, ""])
    await make_checkpointer(store, sealer).write()
    await append(store, [ANN])
    lines = [msgspec.json.decode(line) for line in await exported(store)]
    assert lines[0] == {"form": FORM}
    assert [line["type"] for line in lines[1:]] == ["checkpoint", "record", "record", "record", "record"]
    assert await faults_of_lines(await exported(store), tmp_path / "trail.jsonl") == []


async def test_concurrent_writes_leave_no_dangling_references_in_an_export(memory: Store, tmp_path: Path) -> None:
    sealer = make_sealer()
    memory.attach(sealer)
    checkpointer = make_checkpointer(memory, sealer)
    await append(memory, [ANN] * 3)
    await checkpointer.write()
    lines = []
    async for line in export_lines(memory):
        lines.append(line)
        if len(lines) in (3, 7):
            await append(memory, [ANN, BOB])
            await checkpointer.write()
            await append(memory, [ANN])
    assert len(await memory.read(ScanCheckpoints())) == 3
    assert await faults_of_lines(lines, tmp_path / "trail.jsonl") == []


@rows(
    "text, reason",
    (b"", "not an export"),
    (b"{}\n", "not an export"),
    (b"not json\n", "not an export"),
    (b'{"form":"bespeak-audit/1"}\n{', "line 2"),
    (b'{"form":"bespeak-audit/1"}\n{"type":"record"}', "line 2"),
    (b'{"form":"bespeak-audit/1"}\n{"type":"other"}', "neither"),
    (b'{"form":"bespeak-audit/1"}\n[]', "neither"),
    (b'{"form":"bespeak-audit/1"}\n"' + b"a" * 5_000_000 + b'"', "too long"),
    ids=["empty", "object", "text", "broken", "incomplete", "unknown", "array", "long"],
)
async def test_another_file_is_refused_with_the_line(tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "trail.jsonl"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=reason):
        FileTrail(path)


async def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        FileTrail(tmp_path / "missing")

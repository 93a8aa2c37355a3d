"""Semantic profiles: those that agents have agreed on, and those of their tasks (IoA 9)."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from bespeak.state.store.command import Command, Statement, Steps
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record

KIND: Final = "semantic_profile"

KEPT: Final = 30 * 86400.0
"""Seconds for which a profile is kept after its last use."""

_ACTIVE: Final = "active"


class RecordedProfile(msgspec.Struct, frozen=True):
    """A profile in the store."""

    digest: str
    """SHA-256 of the profile."""
    profile: Any
    """Profile as plain data."""
    owner: str = ""
    """Agent that it belongs to."""
    version: int = 1
    """Number of profiles that the task has had."""


class FindProfile(Command, frozen=True):
    """Find the profile of a task, or one that was agreed on."""

    record_id: str

    def steps(self) -> Steps:
        """Return a RecordedProfile; its digest is empty if there is none."""
        return _read((yield from FindRecord((KIND,), record_id=self.record_id).steps()))


class UseProfile(Command, frozen=True):
    """Find a profile for a call, and keep it longer."""

    record_id: str

    def steps(self) -> Steps:
        """Return a RecordedProfile; its digest is empty if there is none."""
        found = yield from FindRecord((KIND,), record_id=self.record_id).steps()
        if found is not None:
            yield _prolong(self.record_id)
        return _read(found)


class RecordProfile(Command, frozen=True):
    """Record the profile of a task unless it has one, which then stays (IoA 9)."""

    record_id: str
    owner: str
    digest: str
    profile: Any

    def steps(self) -> Steps:
        """Return the RecordedProfile of the task, perhaps with another digest."""
        find = FindRecord((KIND,), record_id=self.record_id)
        found = yield from find.steps()
        if found is None:
            made = yield from _put(self)
            # Of two calls that begin a task at once, the second finds the record of the first.
            return _read(made if isinstance(made, Record) else (yield from find.steps()))
        yield _prolong(self.record_id)
        return _read(found)


class ReplaceProfile(Command, frozen=True):
    """Record the new profile of a task after a renegotiation, or the first one (IoA 9)."""

    record_id: str
    owner: str
    digest: str
    profile: Any

    def steps(self) -> Steps:
        """Return the RecordedProfile."""
        made = yield from _put(self)
        if not isinstance(made, Record):
            change = ChangeRecord(self.record_id, (KIND,), (_ACTIVE,), _ACTIVE, data=_data(self), lifetime=KEPT)
            made = yield from change.steps()
        return _read(made)


def task_record(owner: str, task_id: str) -> str:
    """Return the id of the record with the profile of a task."""
    return _id("task", owner, task_id)


def profile_record(owner: str, digest: str) -> str:
    """Return the id of a profile that an agent has agreed on, which it may refer to."""
    return _id("profile", owner, digest)


def _id(*parts: str) -> str:
    text = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return f"semantic-{hashlib.sha256(text).hexdigest()[:40]}"


def _prolong(record_id: str) -> Statement:
    return Statement(
        "UPDATE records SET expires = {now} + ? WHERE record_id = ? AND expires < {now} + ?",
        (KEPT, record_id, KEPT / 2),
    )


def _put(command: RecordProfile | ReplaceProfile) -> Steps:
    """Add a record, also in the place of one that has expired and is not removed yet."""
    yield Statement("DELETE FROM records WHERE record_id = ? AND expires <= {now}", (command.record_id,))
    put = PutRecord(command.record_id, KIND, command.owner, _ACTIVE, _data(command), lifetime=KEPT)
    return (yield from put.steps())


def _data(command: RecordProfile | ReplaceProfile) -> str:
    return msgspec.json.encode({"digest": command.digest, "profile": command.profile}).decode()


def _read(record: Record | None) -> RecordedProfile:
    if record is None:
        return RecordedProfile("", None)
    content = record.content()
    return RecordedProfile(content["digest"], content["profile"], record.owner, record.version)

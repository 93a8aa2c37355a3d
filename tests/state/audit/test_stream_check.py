"""One stream: gaps, order, and what its checkpoints saw."""

from __future__ import annotations

from tests.state.audit.trails import ANN, make_sealer

from bespeak.state.audit.record import KeptRecord, place_of
from bespeak.state.audit.verification import Claim, StreamCheck, TrailFault


def make_records(count: int) -> list[KeptRecord]:
    sealer = make_sealer()
    sealer.learn(ANN, None)
    made = []
    for position in range(count):
        sealed = sealer.seal(ANN, {"agent_id": ANN})
        made.append(KeptRecord(position, sealed.stream, sealed.sequence, ANN, sealed.audit_id, sealed.jws))
    return made


RECORDS = make_records(9)


def follow(records: list[KeptRecord], *claims: Claim) -> list[TrailFault]:
    check = StreamCheck("s1")
    for claim in claims:
        check.claim(claim)
    check.begin()
    faults = [fault for record in records for fault in check.take(record, place_of(record.jws))]
    return [*faults, *check.end()]


def digest(count: int) -> str:
    place = place_of(RECORDS[count].jws)
    assert place is not None
    return place.stream_digest


def test_complete_stream_has_no_fault() -> None:
    assert follow(RECORDS, Claim(8, digest(8), "c2"), Claim(3, digest(3), "c1")) == []


def test_several_missing_records_are_one_fault() -> None:
    [fault] = follow([*RECORDS[:2], *RECORDS[5:]], Claim(5, digest(5), "c1"), Claim(4, digest(4), "c0"))
    assert (fault.kind, fault.sequence) == ("removed", 3)
    assert fault.message == f"records 3 to 5 of the stream, before {RECORDS[5].audit_id}: 3 records were removed"


def test_a_record_from_the_middle_of_a_gap_leaves_the_rest_of_it_missing() -> None:
    faults = follow([*RECORDS[:2], *RECORDS[5:], RECORDS[3]])
    assert [(fault.kind, fault.sequence) for fault in faults] == [("reordered", 4), ("removed", 3), ("removed", 5)]


def test_removed_stream_is_reported_by_its_checkpoints() -> None:
    [fault] = follow([], Claim(2, digest(2), "c1"), Claim(5, digest(5), "c2"))
    assert (fault.kind, fault.sequence, fault.checkpoint_id) == ("truncated", 1, "c2")
    assert "5 records were cut off" in fault.message


def test_contradicting_checkpoint_names_the_record() -> None:
    [fault] = follow(RECORDS, Claim(4, "f" * 64, "c1"))
    assert (fault.kind, fault.audit_id, fault.sequence) == ("changed", RECORDS[3].audit_id, 4)


def test_invalid_ids_and_digests_do_not_raise() -> None:
    odd = KeptRecord(1, "s1", 1, "", "not hexadecimal", "\udcff")
    assert [fault.kind for fault in follow([odd, RECORDS[1]])] == ["changed"]

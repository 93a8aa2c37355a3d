"""Many commands as one statement: texts that repeat, results that find their commands."""

from __future__ import annotations

from tests.cases import rows

from bespeak.extensions.messages.store import PutOutbox
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.commands.idempotency import Claimed, ClaimKey, FinishKey, InProgress, Recorded, UseNonce
from bespeak.state.store.postgres_transaction import Batch, BatchEntry
from bespeak.state.store.store import AGAIN, Command, Conflict, Sealed

CLAIM = ClaimKey("s", "k", b"h", 30.0, 60.0)
FINISH = FinishKey("s", "k", 1, b"a", 60.0)
NONCE = UseNonce("k", "v", 60.0)
PUT = PutOutbox("t", "r", "{}")


def entries(*commands: Command, required: bool = False) -> list[BatchEntry]:
    return [BatchEntry(command, required=required) for command in commands]


def test_statement_depends_on_the_kinds_and_has_an_array_for_each_field_and_the_topics() -> None:
    one = Batch(entries(CLAIM, NONCE)).statement()[0]
    assert Batch(entries(NONCE, CLAIM, CLAIM, NONCE, CLAIM)).statement()[0] == one
    assert Batch(entries(CLAIM)).statement()[0] != one
    sql, parameters = Batch(entries(NONCE, UseNonce("k", "w", 1.0))).statement()
    assert parameters == [["k", "k"], ["v", "w"], [60.0, 1.0]]
    assert "$3::float8[]" in sql
    assert "$4" not in sql
    assert "{" not in sql
    sql, parameters = Batch(entries(PUT, PUT, NONCE)).statement()
    assert "pg_notify" in sql
    assert parameters[-1] == ["outbox"]


def test_required_commands_are_named_and_sealed_ones_are_replaced() -> None:
    append = BatchEntry(AppendAudit("agent", {}))
    append.item = Sealed("id", "stream", 7, "agent", "jws")
    sql, parameters = Batch([*entries(FINISH, required=True), BatchEntry(FINISH), append]).statement()
    assert (parameters[:5], parameters[-1]) == ([["stream"], [7], ["agent"], ["id"], ["jws"]], [1])
    assert "1 / " in sql
    assert "1 / " not in Batch(entries(FINISH)).statement()[0]


@rows(
    "command, row, result",
    (CLAIM, (1, 3, None, None, None), Claimed(3)),
    (CLAIM, (1, None, b"h", None, 4.0), InProgress(b"h", 4.0)),
    (CLAIM, (1, None, b"h", None, -4.0), InProgress(b"h", 0.0)),
    (CLAIM, (1, None, b"h", b"a", 4.0), Recorded(b"h", b"a")),
    (CLAIM, None, AGAIN),
    (FINISH, (1,), True),
    (FINISH, None, Conflict("lease-lost")),
    (NONCE, None, Conflict("nonce-used")),
    (PUT, (1, 12), 12),
)
def test_result_is_made_from_a_row_or_its_absence(
    command: Command, row: tuple[object, ...] | None, result: object
) -> None:
    (entry,) = one = entries(command)
    Batch(one).answer([[row] if row is not None else []])
    assert entry.result == result


def test_rows_are_assigned_to_commands_by_number() -> None:
    three = entries(NONCE, NONCE, NONCE)
    Batch(three).answer([[(3,), (1,)]])
    assert [entry.result for entry in three] == [True, Conflict("nonce-used"), True]

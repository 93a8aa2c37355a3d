"""What the tables look like, and that both databases would make them alike."""

from __future__ import annotations

import msgspec
import pytest

from bespeak.state.store.sql import POSTGRES_WORDS, migrations, statements
from bespeak.state.store.transfer import shapes


def test_columns_kinds_and_keys_are_those_of_the_migrations() -> None:
    nonces = shapes()["nonces"]
    assert (nonces.columns, nonces.key) == (("kind", "value", "expires"), ("kind", "value"))
    row = msgspec.convert({"kind": "k", "value": "v", "expires": 1}, nonces.row)
    assert msgspec.structs.astuple(row) == ("k", "v", 1.0)
    answer = shapes()["idempotency"].row.__annotations__["answer"]
    assert [msgspec.convert(value, answer) for value in ("AA==", None)] == [b"\0", None]


def test_rows_that_the_database_numbers_and_rows_that_expire_are_known() -> None:
    numbered = {name for name, shape in shapes().items() if shape.key == ("position",)}
    assert {"lifecycle_events", "outbox", "audit", "checkpoints"} <= numbered
    assert shapes()["nonces"].expires
    assert not shapes()["audit"].expires


def test_every_created_table_has_a_shape_and_no_placeholder_is_unused() -> None:
    made = [text.split()[2] for migration in migrations() for text in migration if text.startswith("CREATE TABLE")]
    assert list(shapes()) == made
    assert not [text for text in statements(0, POSTGRES_WORDS) if "{" in text]


@pytest.mark.parametrize("name", shapes())
def test_columns_of_a_key_are_in_its_order(name: str) -> None:
    shape = shapes()[name]
    assert shape.key
    assert tuple(column for column in shape.columns if column in shape.key) == shape.key

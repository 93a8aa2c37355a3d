from __future__ import annotations

from dataclasses import replace

import pytest
from tests.runtime.data.ledger import COLUMNS

from bespeak.contract.data_set import DataColumn
from bespeak.runtime.data.postgres import PostgresDialect
from bespeak.runtime.data.query import DataFilter, DataQuery
from bespeak.runtime.data.sources import Dialect, SqliteDialect, Statement, as_relation, quote

NAMED = {column.name: column for column in COLUMNS}
ATTACK = "x'; DROP TABLE ledger; --"


@pytest.mark.parametrize("dialect", [SqliteDialect(), PostgresDialect()])
def test_what_callers_send_is_never_in_the_text(dialect: Dialect) -> None:
    query = DataQuery(
        limit=5,
        columns=("id",),
        filters=(
            DataFilter("memo", "eq", ATTACK),
            DataFilter("memo", "contains", ATTACK),
            DataFilter("memo", "in", [ATTACK, ATTACK]),
        ),
        order=(("memo", False), ("id", False)),
        after=(ATTACK, 3),
    )
    statement = Statement(dialect, quote("ledger"), NAMED, query)
    assert "DROP" not in statement.text
    assert statement.parameters.count(ATTACK) == 5


def test_order_needs_no_extra_term_for_columns_that_are_never_null() -> None:
    columns = NAMED | {"id": replace(NAMED["id"], nullable=False)}
    query = DataQuery(limit=5, columns=("id",), order=(("id", False),), after=(3,))
    statement = Statement(SqliteDialect(), quote("ledger"), columns, query)
    assert statement.text == (
        'SELECT t."id" AS "id" FROM "ledger" AS t WHERE (t."id" > ?1 OR (t."id" = ?1 AND FALSE)) '
        'ORDER BY t."id" LIMIT 5 OFFSET 0'
    )


def test_names_are_quoted() -> None:
    odd = DataColumn('a" FROM secrets; --', {"type": "string"})
    text = Statement(SqliteDialect(), quote('b"c'), {odd.name: odd}, DataQuery(limit=1, columns=(odd.name,))).text
    assert text.startswith('SELECT t."a"" FROM secrets; --" AS "a"" FROM secrets; --" FROM "b""c" AS t')


def test_comment_at_the_end_of_a_query_hides_nothing() -> None:
    assert as_relation("SELECT 1 -- all;\n") == "(SELECT 1 -- all\n)"

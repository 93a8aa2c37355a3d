from __future__ import annotations

from bespeak.runtime.data.query import DataFilter, DataQuery


def test_value_of_a_filter_is_found_by_column_and_operator() -> None:
    query = DataQuery(limit=1, filters=(DataFilter("a", "eq", 1), DataFilter("a", "max", 2), DataFilter("b", "eq", 3)))
    assert (query.value("a"), query.value("a", "max"), query.value("b", "min"), query.value("c")) == (1, 2, None, None)

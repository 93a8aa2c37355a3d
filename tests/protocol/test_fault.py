from __future__ import annotations

from bespeak.contract.grammar.syntax import parse_template
from bespeak.contract.limits import read_cost
from bespeak.contract.schema.validation import compile_schema
from bespeak.protocol.exchange.header_values import parse_budget
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.key_text import parse_key


def test_parsers_return_a_fault_that_names_the_wrong_part() -> None:
    assert parse_template("/room/{id}/bed/{id}") == Fault(
        "the parameter '{id}' occurs twice in '/room/{id}/bed/{id}'", "{id}"
    )
    faults = [
        parse_template("/room/{id}x"),
        parse_budget("tokens"),
        compile_schema({"properties": {"a": {"type": "x"}}}),
        *read_cost({"tokens": -1})[1],
        parse_key("none"),
    ]
    assert [fault.at for fault in faults if isinstance(fault, Fault)] == [
        *("{id}x", "tokens", "/properties/a/type", "tokens", ""),
    ]

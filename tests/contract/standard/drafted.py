"""Comparison of the tables with those of the draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bespeak.contract.schema.validation import compile_schema
from bespeak.contract.standard.definition import StandardMethod, object_of
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault


class Drafted(NamedTuple):
    """What the draft says of a method."""

    must: str
    other: str
    codes: str
    """Error codes. 451 and 452 of this draft are 455 and 456 of the later ones."""
    idempotent: bool = False


GENERAL = {status.BAD_REQUEST, status.UNPROCESSABLE, status.UNAVAILABLE, status.SCOPE_VIOLATION}
"""Codes that the gates, the input check and the store give for every endpoint."""


def compare(methods: tuple[StandardMethod, ...], drafted: Mapping[str, Drafted]) -> None:
    """Every method has the parameters of its table, its codes, and schemas that compile."""
    assert [method.name for method in methods] == list(drafted)
    for method in methods:
        said = drafted[method.name]
        assert set(method.required) == set(said.must.split()), method.name
        assert {*said.must.split(), *said.other.split()} <= set(method.parameters), method.name
        codes = {int(code) for code in said.codes.split()}
        assert codes <= {*(error.status for error in method.errors), *GENERAL}, method.name
        assert method.idempotent == said.idempotent, method.name
        for schema in (object_of(method.takes), object_of(method.returns or {})):
            assert not isinstance(compile_schema(schema), Fault), method.name

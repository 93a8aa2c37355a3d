"""A procedure has an id, and a function or steps."""

from __future__ import annotations

from tests.cases import rows

from bespeak.contract.procedure import Procedure, find_repeated


@rows(
    "procedure",
    Procedure(procedure_id="quality-check", function="quality:check"),
    Procedure(procedure_id="a.b_c", target=print),
    Procedure(procedure_id="chain", steps=({"method": "FIND"},)),
)
def test_a_complete_procedure_has_no_faults(procedure: Procedure) -> None:
    assert procedure.faults() == []


@rows(
    "procedure, fault",
    (Procedure(procedure_id="rm -rf /", target=print), "the id must be"),
    (Procedure(procedure_id="x" * 200, target=print), "the id must be"),
    (Procedure(procedure_id="x"), "either a function or steps"),
    (Procedure(procedure_id="x", function="a:b", steps=({"method": "FIND"},)), "either a function or steps"),
    (Procedure(procedure_id="x", function="quality.check"), "must be module:function"),
)
def test_faults_are_named(procedure: Procedure, fault: str) -> None:
    assert fault in procedure.faults()[0]


def test_an_id_that_is_used_twice_is_found() -> None:
    one, other = Procedure(procedure_id="x", target=print), Procedure(procedure_id="y", target=print)
    assert (find_repeated((one, other)), find_repeated((one, other, one))) == (None, "x")

"""Procedures are bound when the server starts; those that cannot run are reported and left out."""

from __future__ import annotations

import pytest
from tests.service import AGENT, build

from bespeak.contract.procedure import Procedure
from bespeak.runtime.bindings.procedure import path_of


def check(number: int) -> dict[str, int]:
    """Check a number."""
    return {"number": number}


def look(number: int) -> dict[str, int]:
    """Look at a number."""
    return {"number": number}


@pytest.mark.parametrize(
    ("procedure", "fault"),
    [
        (Procedure(procedure_id="x", function="nowhere:check"), "nowhere"),
        (Procedure(procedure_id="x", function="os:nothing"), "nothing"),
        (Procedure(procedure_id="x", steps=({"verb": "FIND"},)), "its steps are not valid"),
        (Procedure(procedure_id="x", steps=({"method": "FIND"},), input_schema={"type": 3}), "its input schema"),
        (Procedure(procedure_id="x", target=check, input_schema={"type": "object"}), "needs 'number'"),
        (Procedure(procedure_id="x"), "either a function or steps"),
    ],
)
def test_what_cannot_run_is_reported(procedure: Procedure, fault: str) -> None:
    bench = build(procedures=(procedure,))
    assert "x" not in bench.server.registrar.procedures
    (finding,) = [one for one in bench.findings if one.rule == "Y824"]
    assert fault in finding.message


def test_the_second_procedure_with_an_id_is_reported() -> None:
    bench = build(procedures=(Procedure(procedure_id="x", target=check), Procedure(procedure_id="x", target=look)))
    assert bench.server.registrar.procedures["x"].procedure.target is check
    assert "another procedure has its id" in bench.findings[-1].message


def test_no_request_reaches_a_procedure_and_no_document_names_it() -> None:
    bench = build(procedures=(Procedure(procedure_id="look", target=check),), methods=("RUN",))
    assert bench.send("RUN", path_of("look"), {"number": 1}, scopes="activation:run").status == 404
    assert path_of("look") not in str(bench.send("DISCOVER", "/methods", agent_id=AGENT).json)

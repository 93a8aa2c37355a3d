"""Functions that take part in standard methods."""

from __future__ import annotations

import pytest

from bespeak import App, ContractError, Refusal
from bespeak.app.server.assembly import assemble
from bespeak.contract.participant import JoinedFunction, Participant


def app() -> App:
    return App("Desk", server_id="desk.example", operator="Desk", contact="ops@desk.example")


def print_label(order: str, copies: int = 1) -> dict[str, str]:
    """Print the label of an order."""
    return {"printed": order * copies}


def labels(name: str = "labels", function: object = print_label) -> Participant:
    joined = JoinedFunction(function=function, method="SUBMIT")  # type: ignore[arg-type] # also wrong ones
    return Participant(kind="queue", name=name, functions={"run": joined}, methods=("SUBMIT",))


def test_functions_become_routes_that_only_methods_reach_and_their_methods_are_offered() -> None:
    service = app()
    service._join(labels())
    registrar = assemble(service.service()).registrar
    route = registrar.participants["queue"]["labels"].routes["run"]
    assert route.endpoint.internal
    assert route.endpoint.input_schema["required"] == ["order"]
    assert "SUBMIT" in registrar.service.methods
    assert route.endpoint.key not in registrar.endpoints


def refusing() -> None:
    """Refuse."""
    raise Refusal("jammed", "The printer is jammed.")


@pytest.mark.parametrize(
    ("participant", "message"),
    [
        (labels("No Name"), "the name must be lower-case words"),
        (labels(), "another queue has its name"),
        (labels("other", refusing), "refuses with 'jammed', which is not a declared error"),
    ],
)
def test_what_cannot_take_part_is_refused_where_it_is_declared(participant: Participant, message: str) -> None:
    service = app()
    service._join(labels())
    with pytest.raises(ContractError, match=message):
        service._join(participant)

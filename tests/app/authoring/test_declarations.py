"""Declarations in Python: errors, data, procedures, and mistakes that are raised or collected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.process import bespeak as run
from tests.service import echo, make_endpoint

from bespeak import App, ContractError, DataQuery
from bespeak.app.authoring.declarations import check_behaviour, check_fit, collected_mistakes, declare_errors
from bespeak.contract.data_set import DataSet, data_sets
from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.handler import Refusal
from bespeak.contract.service import DataClass, DataManifest
from bespeak.protocol.exchange.messages import Context
from bespeak.text.source.tree import Location


def make_app() -> App:
    return App("T", server_id="t.example", operator="Tests", contact="ops@t.example")


def declare(app: App, path: str, impact: str = "informational") -> None:
    def fetch() -> dict[str, str]:
        """Fetch a thing.

        Outcome: The thing is returned.
        """
        return {}

    app.endpoint("FETCH", path, impact=impact)(fetch)  # type: ignore[arg-type] # wrong on purpose


def test_mistake_raises_at_its_declaration_and_alone_as_it_is() -> None:
    with pytest.raises(ContractError, match="FETCH /a cannot be declared"):
        declare(make_app(), "/a", impact="none")
    with pytest.raises(ContractError, match="FETCH /a cannot be declared"), collected_mistakes("things"):
        declare(make_app(), "/a", impact="none")


def test_mistakes_are_collected_and_raised_together() -> None:
    app = make_app()

    def load() -> None:
        declare(app, "/a", impact="none")
        declare(app, "/thing")
        declare(app, "/b", impact="some")
        app.resource("guide", "A guide.")(list)
        app.resource("guide", "A guide.")(list)

    with pytest.raises(ContractError) as caught, collected_mistakes("things"):
        load()
    assert caught.value.message.splitlines()[0] == "3 declarations of things are not valid"
    assert "resource 'guide' already exists" in caught.value.message
    assert [finding.rule for finding in caught.value.findings] == ["S404", "S404"]  # type: ignore[attr-defined] # Diagnostic
    assert [endpoint.path for endpoint in app.service().endpoints] == ["/thing"]


@pytest.mark.process
def test_a_syntax_error_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import os\n\ndef f(:\n    pass\n")
    done = run("serve", "app.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "app.py:3:7: error[H730] syntax error: invalid syntax\n  3 | def f(:\n    |       ^" in done.stderr


ROOM = replace(
    make_endpoint(
        "BOOK",
        "/room",
        echo,
        properties={"room_id": {"type": "string"}, "nights": {"type": "integer"}},
        required=("room_id",),
        errors=("room_taken",),
    ),
    location=Location("handlers.py", 7),
)


def fits(function: Callable[..., Any], *, inline: bool = False) -> list[str]:
    return [finding.message for finding in check_fit(ROOM, function, inline=inline, advice="")]


def book(room_id: str, nights: int = 1) -> None:
    raise Refusal("room_taken")


def with_context(context: Context, room_id: str, nights: int = 1) -> None: ...


def whole(values: dict[str, Any]) -> None: ...


def open_ended(room_id: str, **rest: Any) -> None: ...


async def waiting(room_id: str, nights: int = 1) -> None: ...


@pytest.mark.parametrize("function", [book, with_context, whole, open_ended, waiting])
def test_a_function_that_takes_the_input_fits(function: Callable[..., Any]) -> None:
    assert fits(function) == []


def lacking(room_id: str) -> None: ...


def demanding(room_id: str, nights: int) -> None: ...


def asking(room_id: str, guest: str, nights: int = 1) -> None: ...


@rows(
    "function, message",
    (lacking, "BOOK /room: lacking(): the input has 'nights', which the function does not take"),
    (demanding, "BOOK /room: demanding(): the input may lack 'nights', but the parameter has no default"),
    (asking, "BOOK /room: asking(): the function needs 'guest', which the input does not have"),
)
def test_mismatched_parameter_is_reported(function: Callable[..., Any], message: str) -> None:
    assert fits(function) == [message]


def misspelt(roomid):  # type: ignore[no-untyped-def]
    ...


def test_misspelt_single_parameter_does_not_take_the_whole_input() -> None:
    assert fits(misspelt) == [
        "BOOK /room: misspelt(): the parameter 'roomid' is not a field of the input; did you mean 'room_id'?"
    ]


def refusing(room_id: str, nights: int = 1) -> None:
    raise Refusal("too_late")


def test_undeclared_refusal_is_reported_at_its_line() -> None:
    [finding] = check_fit(ROOM, refusing, inline=False, advice="")
    assert "refuses with 'too_late'" in finding.message
    assert finding.help == "Add 'too_late' to the errors of the endpoint."
    assert finding.location is not None
    assert finding.location.line == refusing.__code__.co_firstlineno + 1


def test_a_coroutine_is_not_inline() -> None:
    [message] = fits(waiting, inline=True)
    assert "inline=True is for `def`" in message
    assert list(check_behaviour(ROOM, (), "", inlined=False)) == []


def test_errors_of_the_decorator_come_first_and_describe_themselves() -> None:
    described = {"taken": "from the docstring", "closed": "closed today"}
    assert declare_errors({"taken": "from the decorator"}, described) == (
        DeclaredError("taken", "from the decorator"),
        DeclaredError("closed", "closed today"),
    )


def test_an_error_that_is_only_named_is_described_by_the_docstring() -> None:
    assert declare_errors(["taken"], {"taken": "from the docstring"}) == (DeclaredError("taken", "from the docstring"),)


@dataclass
class Rate:
    currency: str
    rate: float
    day: date
    note: str | None = None


def make(**more: Any) -> App:
    return App("Bank", server_id="bank.example", operator="Bank", contact="ops@bank.example", **more)


def declared(app: App) -> DataSet:
    [data] = data_sets(app.service().data_manifest)
    return data


def test_columns_come_from_the_type_of_the_rows() -> None:
    app = make()

    @app.data("exchange-rates", description="Rates", formats=["json", "csv"], sensitivity="low", key=["currency"])
    def rates(query: DataQuery) -> list[Rate]:
        return []

    data = declared(app)
    assert {column.name: column.kind for column in data.columns} == {
        "currency": "string",
        "rate": "number",
        "day": "date",
        "note": "string",
    }
    assert [column.name for column in data.columns if column.takes_null] == ["note"]
    assert (data.target, data.formats, data.key) == (rates, ("json", "csv"), ("currency",))


def test_rows_may_be_yielded() -> None:
    for_each, later = make(), make()

    @for_each.data("rates")
    def rates() -> Iterator[Rate]:
        yield Rate("EUR", 1.0, date(2026, 1, 1))

    @later.data("rates")
    async def rates_later() -> AsyncIterator[Rate]:
        yield Rate("EUR", 1.0, date(2026, 1, 1))

    for app in (for_each, later):
        assert [column.name for column in declared(app).columns] == ["currency", "rate", "day", "note"]


def test_declared_columns_take_precedence() -> None:
    app = make()

    @app.data("rates", columns={"currency": "string", "rate": {"type": "number", "description": "Per euro"}})
    def rates() -> list[dict[str, Any]]:
        return []

    assert [column.schema.get("description") for column in declared(app).columns] == [None, "Per euro"]


def test_rows_of_files_need_no_function_and_a_given_class_keeps_its_description() -> None:
    app = make()
    app.data("rates", file="rates.csv", sensitivity="low")
    assert declared(app).file == "rates.csv"
    app = make(data_manifest=DataManifest(available_data=(DataClass(name="rates", description="Rates"),)))
    app.data("rates", file="rates.csv")
    assert declared(app).description == "Rates"


def test_mistakes_are_refused_when_they_are_made() -> None:
    app = make()
    with pytest.raises(ContractError, match="the columns of the data class 'rates' are not known"):
        app.data("rates")(list)
    with pytest.raises(ContractError, match="the column 'rate' has no known type"):
        app.data("rates", columns={"rate": "money"})
    with pytest.raises(ContractError, match=r"it needs exactly one of .* has no source"):
        app.service()


def test_class_beyond_the_document_of_an_app_is_refused(tmp_path: Path) -> None:
    document = Path(__file__).parents[2] / "documents" / "valid" / "finance-negotiable-data-manifest.agis"
    app = App.from_agis(document)
    app.data("exchange-rates", file="rates.csv")
    assert declared(app).sensitivity == "informational"
    app.data("salaries", file="salaries.csv")
    with pytest.raises(ContractError, match="'salaries' is not in the data_manifest of the document"):
        app.service()


def make_procedure_app() -> App:
    return App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@rooms.example")


def check(room: str) -> dict[str, str]:
    """Check a room."""
    return {"room": room}


def test_a_decorated_function_is_a_procedure() -> None:
    app = make_procedure_app()
    declared = app.procedure("check-room", idempotent=True, timeout=5, scopes=["rooms:check"])(check)
    (procedure,) = app.service().procedures
    assert declared is check
    assert (procedure.procedure_id, procedure.target, procedure.idempotent) == ("check-room", check, True)
    assert (procedure.timeout, procedure.scopes) == (5, ("rooms:check",))


def take(number: int) -> dict[str, int]:
    """Take a number."""
    return {"number": number}


@rows(
    "procedure_id, function, fields",
    ("rm -rf /", check, {}),
    ("taken", check, {}),
    ("check", check, {"input": {"type": "object", "properties": {"guest": {"type": "string"}}}}),
)
def test_a_mistake_raises(procedure_id: str, function: Callable[..., Any], fields: dict[str, Any]) -> None:
    app = make_procedure_app()
    app.procedure("taken")(take)
    with pytest.raises(ContractError, match="cannot be run"):
        app.procedure(procedure_id, **fields)(function)
    assert len(app.service().procedures) == 1

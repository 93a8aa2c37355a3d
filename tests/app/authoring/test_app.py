from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID, uuid4

import msgspec
import pytest
from msgspec import Meta
from tests.cases import rows
from tests.documents.agis_documents import booking

from bespeak.app.authoring.app import DEFAULT_CONFIDENCE, App
from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.handler import Refusal, RegisteredFunction
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.service import DataClass, DataManifest, Vocabulary
from bespeak.errors import ContractError
from bespeak.protocol.exchange.messages import Context
from bespeak.text.diagnostics.diagnostic import Diagnostic


@dataclass
class Reservation:
    reservation_id: UUID


def make(**options: Any) -> App:
    return App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example", **options)


@pytest.fixture
def app() -> App:
    return make()


def declare(
    app: App, function: Callable[..., Any], method: str = "BOOK", path: str = "/room", **options: Any
) -> Endpoint:
    app.endpoint(method, path, **{"impact": "reversible", **options})(function)
    return app.service().endpoints[-1]


def refused(app: App, function: Callable[..., Any], *arguments: str, **options: Any) -> list[Diagnostic]:
    with pytest.raises(ContractError) as caught:
        declare(app, function, *arguments, **options)
    return [finding for finding in caught.value.findings if isinstance(finding, Diagnostic)]


async def book_room(guest_id: UUID, room_id: str, arrival: date, departure: date) -> Reservation:
    """Reserve a room for the named guest at the named property.

    Outcome: A confirmed reservation exists and its reservation_id is returned.
    """
    if room_id == "12":
        raise Refusal("room_unavailable", "Taken on those dates.", next_free="2026-12-05")
    return Reservation(uuid4())


def fetch(reservation_id: str) -> Reservation:
    """Fetch a reservation.

    Outcome: The reservation is returned.

    Errors:
        not_found: There is none.
        gone: It was cancelled.
    """
    raise Refusal("not_found")


def silent(room_id: str) -> None: ...


def test_a_function_becomes_an_endpoint_and_stays_a_function(app: App) -> None:
    decorated = app.endpoint(
        "BOOK",
        "/room",
        impact="irreversible",
        confidence=0.95,
        scopes=["booking:room"],
        errors={"room_unavailable": "The room is taken."},
    )(book_room)
    assert decorated is book_room
    (endpoint,) = app.service().endpoints
    assert endpoint.key == ("BOOK", "/room")
    assert endpoint.description == "Reserve a room for the named guest at the named property."
    assert endpoint.semantic.intent == endpoint.description
    assert endpoint.semantic.outcome == "A confirmed reservation exists and its reservation_id is returned."
    assert (endpoint.semantic.actor, endpoint.semantic.capability) == ("agent", "transaction")
    assert endpoint.semantic.confidence == 0.95
    assert endpoint.semantic.is_idempotent is False
    assert endpoint.required_scopes == ("booking:room",)
    assert endpoint.errors == (DeclaredError("room_unavailable", "The room is taken."),)
    assert list(endpoint.input_schema["properties"]) == ["guest_id", "room_id", "arrival", "departure"]
    assert endpoint.output_schema["required"] == ["reservation_id"]
    assert isinstance(endpoint.handler, RegisteredFunction)
    assert endpoint.handler.target is book_room
    assert endpoint.handler.function.endswith("test_app.book_room")
    assert endpoint.location is not None
    assert endpoint.location.file == __file__


def test_service_has_the_identity_of_the_app(app: App) -> None:
    identity = app.service().identity
    assert (identity.name, identity.server_id) == ("Acme Rooms", "rooms.acme.example")
    assert (identity.operator, identity.contact, identity.domain) == ("Acme", "ops@acme.example", None)
    assert app.service().catalog == "1.1.0"


def test_standard_methods_are_enabled_by_name_or_category() -> None:
    assert make(methods=["chain", "LOG"]).service().methods == ("LOG", "CHAIN")
    assert "PURCHASE" in make(methods=["transact"]).service().methods
    with pytest.raises(ContractError, match="'CHIAN' is not a standard method"):
        make(methods=["CHIAN"])


def test_decorator_arguments_override_the_docstring(app: App) -> None:
    endpoint = declare(
        app,
        fetch,
        "FETCH",
        "/reservations/{reservation_id}",
        impact="informational",
        capability="discovery",
        actor="guest",
        idempotent=False,
        errors={"not_found": "No such reservation."},
        namespace="reservations",
        deprecated=Deprecation(deprecated_in="2.0.0"),
        description="Fetches.",
        intent="Get it.",
        outcome="You have it.",
        inline=True,
        confidence_guidance=0.5,
        parameter_hints={"reservation_id": "from BOOK"},
        state_transition={"room.status": "FREE -> TAKEN"},
        mcp_tool_name="fetch_reservation",
    )
    texts = (endpoint.description, endpoint.semantic.intent, endpoint.semantic.outcome)
    assert texts == ("Fetches.", "Get it.", "You have it.")
    errors = [(error.name, error.description) for error in endpoint.errors]
    assert errors == [("not_found", "No such reservation."), ("gone", "It was cancelled.")]
    assert endpoint.semantic.capability == "discovery"
    assert endpoint.semantic.is_idempotent is False
    assert endpoint.semantic.mcp_tool_name == "fetch_reservation"
    assert isinstance(endpoint.handler, RegisteredFunction)
    assert endpoint.handler.inline


def test_defaults_follow_from_method_and_impact(app: App) -> None:
    endpoint = declare(
        app, fetch, "FETCH", "/reservations/{reservation_id}", impact="informational", errors=["not_found"]
    )
    assert endpoint.semantic.capability == "retrieval"
    assert endpoint.semantic.is_idempotent is True
    assert (endpoint.semantic.confidence, endpoint.error_names) == (DEFAULT_CONFIDENCE, ("not_found", "gone"))
    assert endpoint.errors[0].description == "There is none."


def test_one_function_may_serve_several_endpoints(app: App) -> None:
    for method in ("FETCH", "READ"):
        declare(app, fetch, method, "/reservations/{reservation_id}")
    assert [endpoint.method for endpoint in app.service().endpoints] == ["FETCH", "READ"]


def test_docstring_is_required_in_both_halves_unless_arguments_replace_it(app: App) -> None:
    (finding,) = refused(app, silent)
    assert finding.rule == "S401"
    assert "the function has no docstring: its first paragraph is the intent" in finding.message
    assert str(finding.location) == f"{__file__}:{silent.__code__.co_firstlineno}"
    endpoint = declare(app, silent, intent="Book it.", outcome="It is booked.")
    assert (endpoint.description, endpoint.semantic.outcome) == ("Book it.", "It is booked.")

    def half(room_id: str) -> None:
        """Book it."""

    assert [finding.pointer for finding in refused(app, half)] == ["/endpoint/semantic/outcome"]


def test_concepts_are_declared_as_iris(app: App) -> None:
    stay = "https://ex.org/onto/hotel#Stay"
    taken = {"room_unavailable": "The room is taken."}
    assert declare(app, book_room, concepts=[stay], errors=taken).semantic.concepts == (stay,)
    (finding,) = refused(app, book_room, "BOOK", "/suite", concepts=[stay, "Stay"], errors=taken)
    assert (finding.rule, finding.pointer) == ("S419", "/endpoint/semantic/concepts/1")


@pytest.mark.parametrize(("name", "rule"), [("scopes", "Y801"), ("errors", "J605"), ("concepts", "S419")])
def test_string_instead_of_a_list_is_one_finding(app: App, name: str, rule: str) -> None:
    (finding,) = refused(app, book_room, **{name: "rooms:read"})
    assert finding.rule == rule
    assert finding.message == (f"BOOK /room: {name} must be a list; got the string 'rooms:read'. Write ['rooms:read']")


def test_a_default_its_own_annotation_forbids_is_refused(app: App) -> None:
    def book(nights: Annotated[int, Meta(ge=1)] = 0) -> None:
        """Book it.

        Outcome: It is booked.
        """

    (finding,) = refused(app, book)
    assert (finding.rule, finding.pointer) == ("J608", "/endpoint/input_schema/properties/nights/default")
    assert "the default of 'nights' is 0" in finding.message


def test_refused_endpoint_is_not_declared_and_a_duplicate_is_refused(app: App) -> None:
    refused(app, silent)
    assert app.service().endpoints == ()
    declare(app, fetch, "FETCH", "/reservations")
    assert [finding.rule for finding in refused(app, fetch, "FETCH", "/reservations")] == ["P307"]


def test_undeclared_error_name_is_reported_at_the_raising_line(app: App) -> None:
    (finding,) = refused(app, book_room)
    assert finding.rule == "J607"
    assert "'room_unavailable'" in finding.message
    assert finding.location is not None
    assert finding.location.line > book_room.__code__.co_firstlineno


@rows(
    "method, path, rule, said",
    ("FETCH", "/list", "P302", ""),
    ("FETCH", "/a/", "P301", ""),
    ("FETCH", "/a/x{b}", "P303", ""),
    ("FETCH", "/a/{room_id}", "P305", "the path has {room_id}, but the function has no parameter room_id"),
    ("FETSH", "/reservations", "M202", "FETCH"),
)
def test_a_place_that_cannot_be_served_is_refused(app: App, method: str, path: str, rule: str, said: str) -> None:
    [finding] = refused(app, fetch, method, path)
    assert finding.rule == rule
    assert said in f"{finding.message} {finding.help}"


@pytest.mark.requirement("API-5.4-5")
def test_an_ambiguous_path_is_refused_with_the_place_of_the_other(app: App) -> None:
    declare(app, fetch, "FETCH", "/reservations/{reservation_id}")
    declare(app, fetch, "READ", "/{reservation_id}/latest")
    (finding,) = refused(app, fetch, "FETCH", "/{reservation_id}/latest")
    assert finding.rule == "P306"
    assert f"({__file__}:" in finding.message


AMOUNTS = ({"gold": 1}, {"tokens": -1}, {"USD": "0.001"}, {"tokens": None})


@rows(
    "options",
    {"impact": "bad"},
    {"confidence": 2},
    {"capability": "bad"},
    {"scopes": ["x"]},
    *({"cost": one} for one in AMOUNTS),
)
def test_a_value_out_of_range_is_refused(app: App, options: dict[str, Any]) -> None:
    [finding] = refused(app, fetch, "FETCH", "/reservations", **options)
    assert (finding.rule == "Y880") is ("cost" in options)


def test_an_impossible_schema_is_refused(app: App) -> None:
    def opaque(a: complex) -> None:
        """Do it."""

    (finding,) = refused(app, opaque)
    assert finding.rule == "J601"
    assert "complex" in finding.message
    assert finding.location is not None


def test_a_coroutine_cannot_be_inline(app: App) -> None:
    assert [f.rule for f in refused(app, book_room, inline=True, errors=["room_unavailable"])] == ["H703"]


def test_an_argument_of_the_past_is_refused_with_what_to_write(app: App) -> None:
    for declare in (app.endpoint, app.handler):
        with pytest.raises(ContractError, match=r"^BOOK /room: .* Remove it\. Write inline=True for a quick `def`"):
            declare("BOOK", "/room", impact="reversible", blocking=True)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'inlin'"):
        app.endpoint("BOOK", "/room", impact="reversible", inlin=True)  # type: ignore[arg-type]


def test_custom_method_of_the_policies_can_be_declared_and_invalid_policies_are_refused() -> None:
    app = make(policies=Policies(methods=MethodPolicy(custom=("FROBNICATE",))))
    assert declare(app, fetch, "FROBNICATE", "/x", capability="analysis").method == "FROBNICATE"
    assert [finding.rule for finding in refused(app, fetch, "FROBNICATE", "/y")] == ["S402"]
    app = make(policies=Policies(methods=MethodPolicy(custom=("x",))))
    with pytest.raises(ContractError, match="Y805"):
        app.service()


def test_a_redirect_becomes_part_of_the_policies() -> None:
    first = Redirect(from_method="BOOK", to_method="RESERVE")
    app = make(policies=Policies(methods=MethodPolicy(redirects=(first,))))
    app.redirect("HIRE", "/room", to_method="BOOK", to_path="/rooms")
    second = Redirect(from_method="HIRE", from_path="/room", to_method="BOOK", to_path="/rooms")
    assert app.service().policies.methods.redirects == (first, second)


def test_a_resource_yields_items(app: App) -> None:
    @app.resource("rooms", "All rooms.")
    def rooms() -> Iterator[str]:
        yield "12"

    (resource,) = app.service().resources
    assert (resource.name, resource.description, list(resource.items())) == ("rooms", "All rooms.", ["12"])
    with pytest.raises(ContractError, match="resource 'rooms' already exists"):
        app.resource("rooms", "Again.")(rooms)


def test_wildcard_handler_needs_wildcards_accepted(app: App) -> None:
    def anything(context: Context) -> None: ...

    with pytest.raises(ContractError, match="wildcards_accepted=True"):
        app.wildcard(anything)
    consenting = make(policies=Policies(wildcards_accepted=True))
    assert consenting.wildcard(anything) is anything
    assert consenting.service().wildcard_handler is anything
    with pytest.raises(ContractError, match="already"):
        consenting.wildcard(anything)


def test_a_catalog_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be used"):
        make(catalog=str(tmp_path / "none.json"))


def test_an_older_catalog_knows_fewer_verbs() -> None:
    (finding,) = refused(make(catalog="1.0.0"), fetch, "TRANSLATE", "/text")
    assert "not in catalog 1.0.0 (catalog 1.1.0 has it)" in finding.message


def test_declared_endpoints_pass_registration(app: App) -> None:
    assert check_endpoint(declare(app, book_room, errors=["room_unavailable"]), app._catalog, Policies()) == []


def _wrapping_itself() -> Any:
    def handler() -> dict[str, int]:
        """Do it.

        Outcome: It is done.
        """
        return {}

    handler.__wrapped__ = handler  # type: ignore[attr-defined]
    return handler


class _Unhashable:
    """Do it.

    Outcome: It is done.
    """

    __hash__ = None  # type: ignore[assignment]

    def __call__(self) -> dict[str, int]:
        return {}


@pytest.mark.parametrize("handler", [dict, int, _wrapping_itself()])
def test_a_callable_whose_parameters_cannot_be_read_is_refused_with_the_reason(handler: Any) -> None:
    app = App("x", server_id="x", operator="x", contact="x")
    with pytest.raises(ContractError):
        app.endpoint("QUERY", "/things", impact="informational", intent="Do it.", outcome="It is done.")(handler)


def test_handler_need_not_be_hashable() -> None:
    app = App("x", server_id="x", operator="x", contact="x")
    app.endpoint("QUERY", "/things", impact="informational", intent="Do it.", outcome="It is done.")(_Unhashable())
    assert len(app.service().endpoints) == 1


def agis(folder: Path, **options: Any) -> App:
    (folder / "rooms.agis").write_bytes(msgspec.json.encode(booking()))
    return App.from_agis(folder / "rooms.agis", **options)


def test_app_of_a_document_has_its_service(tmp_path: Path) -> None:
    service = agis(tmp_path, contact="desk@rooms.acme.example").service()
    identity = service.identity
    assert (identity.name, identity.server_id) == ("Acme Rooms", "rooms.acme.example")
    assert (identity.operator, identity.contact) == ("unspecified", "desk@rooms.acme.example")
    assert (service.description, service.document_version) == ("Rooms for a night.", "1.0.0")
    assert service.vocabulary == Vocabulary(declared_verbs=("BOOK",), domain="hospitality")
    assert service.agtp == "agtp://rooms.acme.example"


def test_a_function_is_bound_to_an_endpoint_of_the_document(tmp_path: Path) -> None:
    app = agis(tmp_path, policies=Policies(strict_output=True))
    assert [finding.rule for finding in app.findings] == ["H705"]

    @app.handler("BOOK", "/room", inline=True)
    def book(room_id: str, context: Context) -> dict[str, str]:
        return {}

    assert book.__name__ == "book"
    assert app.findings == []
    [endpoint] = app.service().endpoints
    assert endpoint.semantic.intent == "Books a room for the guest."
    assert isinstance(endpoint.handler, RegisteredFunction)
    assert (endpoint.handler.target, endpoint.handler.inline) == (book, True)
    assert app.service().policies.strict_output


def test_a_function_that_does_not_fit_the_document_is_refused_at_once(tmp_path: Path) -> None:
    app = agis(tmp_path)
    for name, function, said in (
        ("/room", lambda bed, room_id: {}, "the function needs 'bed', which the input does not have"),
        ("/rooms", lambda room_id: {}, "Did you mean BOOK /room?"),
    ):
        with pytest.raises(ContractError, match=re.escape(said)) as caught:
            app.handler("BOOK", name)(function)
        [finding] = caught.value.findings
        assert isinstance(finding, Diagnostic)
        assert finding.location is not None
        assert finding.location.file == __file__


def test_an_app_without_a_document_has_no_endpoints_to_bind(app: App) -> None:
    with pytest.raises(ContractError, match=r"because the app has no AGIS document"):
        app.handler("BOOK", "/room")(silent)
    assert app.findings == []


def test_an_app_of_a_document_may_have_endpoints_of_its_own_but_not_the_same(tmp_path: Path) -> None:
    app = agis(tmp_path)
    declare(app, book_room, path="/bed", errors={"room_unavailable": ""})
    with pytest.raises(ContractError, match="cannot be declared"):
        declare(app, book_room, errors={"room_unavailable": ""})


def test_relative_path_is_resolved_against_the_calling_file() -> None:
    with pytest.raises(ContractError) as caught:
        App.from_agis("no-such.agis")
    [finding] = caught.value.findings
    assert isinstance(finding, Diagnostic)
    assert finding.location is not None
    assert Path(finding.location.file) == Path(__file__).parent / "no-such.agis"


def test_app_can_declare_the_blocks_of_an_agis_document() -> None:
    vocabulary = Vocabulary(domain="hospitality", negotiable=True)
    manifest = DataManifest(available_data=(DataClass(name="room"),))
    service = make(vocabulary=vocabulary, data_manifest=manifest, description="Rooms.", version="2").service()
    assert (service.vocabulary, service.data_manifest) == (vocabulary, manifest)
    assert (service.description, service.document_version) == ("Rooms.", "2")


def test_internal_since_and_cost_are_declared(app: App) -> None:
    assert declare(app, fetch, path="/bed", internal=True).internal
    reading = {"impact": "informational", "since": "reservation_id"}
    assert declare(app, fetch, "FETCH", "/reservation", **reading).since == "reservation_id"
    (finding,) = refused(app, fetch, "FETCH", "/stay", **{**reading, "since": "updated_at"})
    assert finding.rule == "J609"
    endpoint = declare(app, fetch, cost={"calls": 1, "USD": "0.02", "compute-seconds": 0.5})
    assert str(endpoint.cost) == "calls=1, USD=0.02, compute-seconds=0.5"
    assert declare(app, fetch, path="/suite").cost is None


@pytest.mark.parametrize("confirm", [True, False, None])
def test_confirmation_is_declared(app: App, confirm: bool | None) -> None:
    assert declare(app, fetch, confirm=confirm).confirm is confirm


def test_texts_that_cannot_be_published_are_refused() -> None:
    app = App("Acme \ud800 Rooms", server_id="rooms.example", operator="Acme", contact="ops@rooms.example")
    with pytest.raises(ContractError, match="/identity/name"):
        app.service()
    with pytest.raises(ContractError, match="/endpoint/description"):

        @app.endpoint("FIND", "/rooms", impact="informational", intent="Find.", outcome="Found.", description="\udc00")
        def find() -> None: ...

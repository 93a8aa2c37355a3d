"""Parameters that providers fill: opened once per call, in the right thread, closed in any case, never by a caller."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import pytest
from tests.cases import rows
from tests.stateful import StatefulBench, keeping

import bespeak
from bespeak import App, Context, ContractError, Needs, Refusal
from bespeak.runtime import concurrency
from bespeak.runtime.concurrency import Workers, running_threads
from bespeak.runtime.functions.signature import plan_call, read_signature

pytestmark = pytest.mark.anyio

LOG: list[str] = []
PLACES: dict[str, str] = {}


@pytest.fixture(autouse=True)
def fresh_log() -> None:
    LOG.clear()
    PLACES.clear()


def note(event: str) -> None:
    LOG.append(event)
    PLACES[event] = threading.current_thread().name


def settings() -> str:
    note("settings")
    return "cfg"


Settings = Annotated[str, Needs(settings)]


def session(config: Settings, context: Context) -> Iterator[str]:
    note("open session")
    try:
        yield f"{config} {context.path}"
    except Exception as error:
        note(f"session saw {type(error).__name__}")
        raise
    finally:
        note("close session")


async def client(config: Settings) -> AsyncIterator[str]:
    note("open client")
    try:
        yield f"client of {config}"
    finally:
        note("close client")


async def user(ctx) -> str:  # type: ignore[no-untyped-def]
    note("user")
    return ctx.path  # type: ignore[no-any-return]


@contextmanager
def managed() -> Iterator[str]:
    note("open managed")
    yield "managed"
    note("close managed")


@asynccontextmanager
async def async_managed() -> AsyncIterator[str]:
    note("open managed")
    yield "managed"
    note("close managed")


class Lease:
    def __init__(self, config: Settings) -> None:
        self.config = config

    def __enter__(self) -> str:
        note("open managed")
        return "managed"

    def __exit__(self, *_: object) -> None:
        note("close managed")


Session = Annotated[str, Needs(session)]
Client = Annotated[str, Needs(client)]


def make_app(function: Callable[..., Any], **options: Any) -> App:
    app = App("x", server_id="x", operator="x", contact="x@x.example", policies=bespeak.Policies())
    options = {"impact": "reversible", "intent": "Book it.", "outcome": "It is booked.", **options}
    app.endpoint("BOOK", "/room", **options)(function)
    return app


async def call(app: App, **values: Any) -> Any:
    async with bespeak.connect(app, agent_id="ab" * 32, scopes=["x:y"]) as service:
        return await service.call("BOOK", "/room", **values)


def plain(guest: str, session: Session, config: Settings) -> dict[str, str]:
    note("handler")
    return {"found": f"{guest} {session} {config}"}


async def waiting(guest: str, session: Session, config: Settings) -> dict[str, str]:
    return plain(guest, session, config)


def mixed(guest: str, session: Session, client: Client, user: Annotated[str, Needs(user)]) -> dict[str, str]:
    note("handler")
    return {"found": f"{guest} {session} {client} {user}"}


async def test_a_def_handler_and_its_providers_share_one_thread() -> None:
    assert await call(make_app(plain), guest="Ann") == {"found": "Ann cfg /room cfg"}
    assert LOG == ["settings", "open session", "handler", "close session"]
    assert len(set(PLACES.values())) == 1
    assert PLACES["handler"].startswith("bespeak-handler")


async def test_an_inline_handler_and_its_providers_stay_in_the_loop() -> None:
    assert await call(make_app(plain, inline=True), guest="Ann") == {"found": "Ann cfg /room cfg"}
    assert set(PLACES.values()) == {threading.current_thread().name}


async def test_sync_providers_of_an_async_handler_run_in_threads() -> None:
    assert await call(make_app(waiting), guest="Ann") == {"found": "Ann cfg /room cfg"}
    assert LOG == ["settings", "open session", "handler", "close session"]
    here = threading.current_thread().name
    assert [PLACES[event] == here for event in LOG] == [False, False, True, False]


@pytest.mark.parametrize("inline", [False, True])
async def test_async_providers_of_a_def_handler_are_opened_before_and_closed_after(*, inline: bool) -> None:
    assert await call(make_app(mixed, inline=inline), guest="Ann") == {"found": "Ann cfg /room client of cfg /room"}
    assert [
        *("settings", "open client", "user", "open session"),
        *("handler", "close session", "close client"),
    ] == LOG
    here = threading.current_thread().name
    assert (PLACES["open client"], PLACES["close client"], PLACES["handler"] == here) == (here, here, inline)


@pytest.mark.parametrize("provider", [managed, async_managed, Lease])
async def test_a_context_manager_is_a_provider(provider: Callable[..., Any]) -> None:
    def handle(it: Annotated[str, Needs(provider)]) -> dict[str, str]:
        note("handler")
        return {"found": it}

    handle.__annotations__["it"] = Annotated[str, Needs(provider)]
    assert await call(make_app(handle)) == {"found": "managed"}
    assert [event for event in LOG if event != "settings"] == ["open managed", "handler", "close managed"]


async def test_a_class_beside_an_async_handler_is_made_opened_and_closed_in_threads() -> None:
    class Slow(Lease):
        def __init__(self) -> None:
            note("make managed")

    async def handle(it: Annotated[str, Needs(Slow)]) -> dict[str, str]:
        note("handler")
        return {"found": it}

    handle.__annotations__.update(it=Annotated[str, Needs(Slow)], **{"return": dict[str, str]})
    assert await call(make_app(handle)) == {"found": "managed"}
    here = threading.current_thread().name
    assert [event for event in LOG if PLACES[event] == here] == ["handler"]
    assert [*LOG] == ["make managed", "open managed", "handler", "close managed"]


async def test_a_provider_is_called_once_per_call_unless_it_is_not_cached() -> None:
    Again = Annotated[str, Needs(settings, cached=False)]  # noqa: N806 - a type

    def handle(a: Settings, b: Settings, c: Again, d: Again) -> dict[str, str]:
        return {}

    handle.__annotations__.update(a=Settings, b=Settings, c=Again, d=Again, **{"return": dict[str, str]})
    app = make_app(handle)
    await call(app)
    assert LOG == ["settings"] * 3
    await call(app)
    assert LOG == ["settings"] * 6


# Failures.


async def sending(function: Callable[..., Any], **options: Any) -> tuple[int, str]:
    service = make_app(function, **options).service()
    async with keeping(*service.endpoints) as bench:
        return (await bench.send("BOOK", "/room", {})).refusal


def failing(session: Session) -> dict[str, str]:
    raise Refusal("taken")


async def failing_later(session: Session, client: Client) -> dict[str, str]:
    raise Refusal("taken")


def failing_between(session: Session, client: Client) -> dict[str, str]:
    raise Refusal("taken")


@pytest.mark.parametrize("handle", [failing, failing_later, failing_between])
async def test_the_failure_of_a_handler_is_raised_at_the_yield(handle: Callable[..., Any]) -> None:
    assert await sending(handle, errors=["taken"]) == (422, "taken")
    assert [event for event in LOG if "session" in event] == ["open session", "session saw Refusal", "close session"]


def lenient() -> Iterator[str]:
    try:
        yield "x"
    except Refusal:
        note("caught")


def translating() -> Iterator[str]:
    try:
        yield "x"
    except Refusal:
        raise Refusal("sold") from None


def breaking() -> Iterator[str]:
    yield "x"
    raise OSError("the disk is full")


def committing() -> Iterator[str]:
    yield "x"
    raise Refusal("sold")


def refusing() -> str:
    raise Refusal("sold")


def surprising() -> str:
    name = "never_declared"
    raise Refusal(name)


def yielding_twice() -> Iterator[str]:
    yield "x"
    yield "y"


@rows(
    "provider, fails, answer",
    (lenient, True, (422, "taken")),
    (translating, True, (422, "sold")),
    (breaking, False, (500, "server-error")),
    (committing, False, (422, "sold")),
    (refusing, False, (422, "sold")),
    (surprising, False, (500, "server-error")),
    (yielding_twice, False, (500, "server-error")),
)
async def test_providers_fail_as_handlers_do(
    provider: Callable[..., Any], answer: tuple[int, str], *, fails: bool
) -> None:
    for waits in (False, True):

        def handle(it: str) -> dict[str, str]:
            if fails:
                raise Refusal("taken")
            return {}

        async def handle_later(it: str) -> dict[str, str]:
            return handle(it)

        function = handle_later if waits else handle
        function.__annotations__.update({"it": Annotated[str, Needs(provider)], "return": dict[str, str]})
        assert await sending(function, errors=["taken", "sold"]) == answer


async def test_a_failed_clean_up_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def handle(it: Annotated[str, Needs(breaking)]) -> dict[str, str]:
        return {}

    assert await sending(handle) == (500, "server-error")
    assert "OSError: the disk is full" in caplog.text


# Declarations.


def first(it: Annotated[str, Needs(lambda: "x")]) -> str:
    return it


def cyclic(it: Annotated[str, "replaced below"]) -> str:
    return it


def cycling(it: Annotated[str, Needs(cyclic)]) -> str:
    return it


cyclic.__annotations__["it"] = Annotated[str, Needs(cycling)]


def unfilled(url: str) -> str:
    return url


def undeclared() -> str:
    raise Refusal("sold_out")


@rows(
    "provider, message",
    (cyclic, r"cyclic\(\) needs itself: cyclic -> cycling -> cyclic"),
    (unfilled, r"nothing fills the parameter 'url' of the provider unfilled\(\)"),
    (undeclared, "refuses with 'sold_out', which is not a declared error"),
    (dict.fromkeys, "the provider fromkeys"),
)
def test_a_provider_that_cannot_be_one_is_refused_at_the_declaration(
    provider: Callable[..., Any], message: str
) -> None:
    def handle(it: str) -> dict[str, str]:
        return {}

    handle.__annotations__.update({"it": Annotated[str, Needs(provider)], "return": dict[str, str]})
    with pytest.raises(ContractError, match=message):
        make_app(handle)


def test_needs_as_a_default_is_refused_with_the_annotation_to_write() -> None:
    def read(session: object = Needs(dict)) -> None: ...

    with pytest.raises(ContractError, match=re.escape("write session: Annotated[..., Needs(dict)]")):
        read_signature(read)


def test_a_needed_parameter_is_not_in_the_contract_and_may_not_share_a_name_with_a_field() -> None:
    [endpoint] = make_app(plain).service().endpoints
    assert list(endpoint.input_schema["properties"]) == ["guest"]
    with pytest.raises(ContractError, match="the input has 'session', which a provider fills"):
        plan_call(plain, {"type": "object", "properties": {"guest": {}, "session": {}}, "required": ["guest"]})


async def test_a_caller_that_sends_a_field_of_that_name_gets_what_unknown_fields_get() -> None:
    async with keeping(*make_app(plain).service().endpoints) as bench:
        forged = await bench.send("BOOK", "/room", {"guest": "Ann", "session": "forged"})
        unknown = await bench.send("BOOK", "/room", {"guest": "Ann", "unknown": "forged"})
    assert forged.status == 422
    assert forged.response.body.replace(b"session", b"unknown") == unknown.response.body


def test_the_rest_of_an_input_replaces_neither_the_context_nor_a_needed_parameter() -> None:
    def loose(session: Session, context: Context, **more: Any) -> None: ...

    def looser(context: Context, **more: Any) -> dict[str, Any]:
        return {"context": context, **more}

    schema = {"type": "object", "properties": {"guest": {}}}
    given = {"guest": "Ann", "session": "forged", "context": "forged"}
    context: Any = object()
    assert plan_call(loose, schema)(given, context) == {"guest": "Ann", "context": context}
    assert plan_call(looser, schema)(given, context)["context"] is context


# Overrides.


async def test_an_override_replaces_a_provider_inside_its_block() -> None:
    app = make_app(plain)

    def fake(context: Context) -> Iterator[str]:
        note("open fake")
        yield f"fake {context.agent_id is not None}"
        note("close fake")

    async with bespeak.connect(app, agent_id="ab" * 32, scopes=["x:y"]) as service:
        with app.override(session, fake):
            assert await service.call("BOOK", "/room", guest="Ann") == {"found": "Ann fake True cfg"}
            with app.override(session, lambda: "inner"):
                assert await service.call("BOOK", "/room", guest="Ann") == {"found": "Ann inner cfg"}
            with app.override(settings, lambda: "other"):
                assert await service.call("BOOK", "/room", guest="Ann") == {"found": "Ann fake True other"}
            LOG.clear()
            assert await service.call("BOOK", "/room", guest="Ann") == {"found": "Ann fake True cfg"}
        assert [event for event in LOG if "fake" in event] == ["open fake", "close fake"]
        assert await service.call("BOOK", "/room", guest="Ann") == {"found": "Ann cfg /room cfg"}
    with pytest.raises(ContractError, match="nothing fills the parameter 'url'"), app.override(session, unfilled):
        pass


# Cancellation.


class Held:
    """Providers and handlers that wait in their threads."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.entered.set()
        assert self.go_on.wait(20)


async def cancel(bench: StatefulBench, held: Held) -> None:
    given_up = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
    assert await asyncio.get_running_loop().run_in_executor(None, held.entered.wait, 20)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def test_an_async_provider_is_not_closed_while_the_thread_of_a_cancelled_call_uses_it() -> None:
    held = Held()

    def handle(client: Client, session: Session) -> dict[str, str]:
        held.wait()
        note("handler")
        return {"found": client}

    async with keeping(*make_app(handle).service().endpoints) as bench:
        await cancel(bench, held)
        assert "close client" not in LOG
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 409
        held.go_on.set()
        await until(lambda: "close client" in LOG and not bench.bench.dispatcher._settlement._abandoned)  # type: ignore[union-attr]
        again = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert (again.status, again.json) == (200, {"found": "client of cfg"})
    assert LOG.count("handler") == 1
    assert LOG[-3:] == ["handler", "close session", "close client"]


async def test_what_a_cancelled_call_opens_in_a_thread_is_closed() -> None:
    held = Held()

    def slow() -> Iterator[str]:
        held.wait()
        note("opened")
        yield "x"
        note("never")

    def closing() -> Iterator[str]:
        try:
            yield from slow()
        finally:
            note("closed")

    async def handle(it: Annotated[str, Needs(closing)]) -> dict[str, str]:
        note("handler")
        return {}

    handle.__annotations__["it"] = Annotated[str, Needs(closing)]
    async with keeping(*make_app(handle).service().endpoints) as bench:
        await cancel(bench, held)
        held.go_on.set()
        await until(lambda: running_threads() == 0)
        assert LOG == ["opened", "closed"]


async def test_a_clean_up_has_a_place_even_if_the_threads_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(most=1, waiting=0)
    monkeypatch.setattr(concurrency, "_workers", workers)
    held = Held()

    async def handle(session: Session) -> dict[str, str]:
        workers.submit(held.wait)
        asyncio.get_running_loop().call_soon(held.go_on.set)
        return {}

    async with keeping(*make_app(handle).service().endpoints) as bench:
        assert (await bench.send("BOOK", "/room", {})).status == 200
    assert LOG[-1] == "close session"
    assert workers.pending == 0

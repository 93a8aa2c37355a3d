"""Blocking client for code without an event loop. It runs the asynchronous client in a thread."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from bespeak.agent.client.connect import Block, block
from bespeak.agent.client.negotiation import Synthesis
from bespeak.agent.client.service import ServiceClient
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.projections.manifest_signature import SignatureVerdict
from bespeak.errors import BespeakError
from bespeak.protocol.address import Locator

if TYPE_CHECKING:
    from bespeak.agent.discovery.lookup import Discovered
    from bespeak.agent.tools.tool_runner import SyncToolList

P = ParamSpec("P")
ResultT = TypeVar("ResultT")
_CLOSED: Final = "This client is closed; use it inside its with block."


class LoopThread:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._open = True
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="bespeak-client", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # Leaving the runner cancels the tasks of an interrupted caller.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a coroutine on the loop and wait for its result in the calling thread."""
        with self._turn:
            # The runner cancels tasks submitted before `stop`; later ones would wait forever.
            if not self._open:
                work.close()
                raise BespeakError(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise BespeakError(_CLOSED) from error
        finally:
            future.cancel()

    def stop(self) -> None:
        with self._turn:
            self._open = False
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def waiting(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, ResultT]],
) -> Callable[Concatenate[Any, P], ResultT]:
    """Make a method that waits for one of `_service`, which runs on the loop of `_loop`."""

    @functools.wraps(method)
    def wait(self: Any, /, *arguments: P.args, **options: P.kwargs) -> ResultT:
        own: Callable[P, Coroutine[Any, Any, ResultT]] = getattr(self._service, method.__name__)
        result: ResultT = self._loop.run(own(*arguments, **options))
        return result

    return wait


_END: Final = object()


def _iterating(
    method: Callable[Concatenate[ServiceClient, P], AsyncGenerator[ResultT]],
) -> Callable[Concatenate[SyncServiceClient, P], Iterator[ResultT]]:
    @functools.wraps(method)
    def iterate(self: SyncServiceClient, /, *arguments: P.args, **options: P.kwargs) -> Iterator[ResultT]:
        own: Callable[P, AsyncGenerator[ResultT]] = getattr(self._service, method.__name__)
        items = own(*arguments, **options)
        try:
            while (item := self._loop.run(_next(items))) is not _END:
                yield item
        finally:
            self._loop.run(items.aclose())

    return iterate


async def _next(items: AsyncGenerator[Any]) -> Any:
    return await anext(items, _END)


class SyncServiceClient:
    """A ServiceClient with blocking methods. It is thread-safe. `bespeak.connect_sync` creates it."""

    def __init__(self, loop: LoopThread, service: ServiceClient) -> None:
        self._loop = loop
        self._service = service

    request = waiting(ServiceClient.request)
    call = waiting(ServiceClient.call)
    stream = _iterating(ServiceClient.stream)
    stream_request = _iterating(ServiceClient.stream_request)
    discover = waiting(ServiceClient.discover)
    methods = waiting(ServiceClient.methods)
    identify = waiting(ServiceClient.identify)
    known_endpoints = waiting(ServiceClient.known_endpoints)
    run_tool = waiting(ServiceClient.run_tool)

    def for_agent(self, as_: str | None = None, **options: Any) -> SyncServiceClient:
        """Return a client of the same service for another agent; the options are those of `ServiceClient.for_agent`."""
        return SyncServiceClient(self._loop, self._service.for_agent(as_, **options))

    @functools.wraps(ServiceClient.tools)
    def tools(self, style: str = "openai", **options: Any) -> SyncToolList:
        from bespeak.agent.tools.tool_runner import SyncToolList, list_tools  # noqa: PLC0415 - only for models

        wait = self._loop.run
        return SyncToolList(wait(list_tools(self._service._called, style, wait=wait, **options)), wait)

    @functools.wraps(ServiceClient.propose)
    def propose(self, *arguments: Any, **options: Any) -> Synthesis:
        synthesis = self._loop.run(self._service.propose(*arguments, **options))
        return replace(synthesis, invoke=lambda given: self._loop.run(synthesis.invoke(given)))

    @property
    def locator(self) -> Locator:
        """Address of the service."""
        return self._service.locator

    @property
    def discovered(self) -> Discovered | None:
        """The discovery documents found on the web; None for a service reached by AGTP."""
        return self._service.discovered

    @property
    def manifest(self) -> ManifestDocument | None:
        """The last manifest read; None before `discover`."""
        return self._service.manifest

    @property
    def signature(self) -> SignatureVerdict | None:
        """Verification result of the manifest's signature; None before `discover`."""
        return self._service.signature

    @property
    def catalog_version(self) -> str | None:
        """The newest catalog version both sides support."""
        return self._service.catalog_version


def blocking(opener: Callable[P, AbstractAsyncContextManager[ServiceClient]]) -> Callable[P, Block[SyncServiceClient]]:
    """Wrap a function that opens an asynchronous client into one that opens a blocking client."""

    @block
    @functools.wraps(opener)
    @contextmanager
    def opened(*arguments: P.args, **options: P.kwargs) -> Iterator[SyncServiceClient]:
        loop = LoopThread()
        try:
            context = opener(*arguments, **options)
            service = loop.run(context.__aenter__())
            try:
                yield SyncServiceClient(loop, service)
            finally:
                loop.run(context.__aexit__(None, None, None))
        finally:
            loop.stop()

    return opened

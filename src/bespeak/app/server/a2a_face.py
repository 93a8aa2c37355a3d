"""Construction of the A2A face: its skills, tasks, credentials and place on the HTTP face."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.app.server.http_face import ACCEPT, CORS, extra_needed, make_guard, mount
from bespeak.app.server.http_pages import Publishing, project_card_of
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.projections.a2a_card import INTERFACE
from bespeak.faces.http.asgi import Application
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings

if TYPE_CHECKING:
    from bespeak.faces.a2a.http import A2aApplication

_CORS: Final[Mapping[str, Any]] = {
    "allow_methods": ("POST",),
    "allow_headers": (*CORS["allow_headers"], "a2a-version", "a2a-extensions"),
    "expose_headers": ("WWW-Authenticate",),
}
_logger = logging.getLogger(__name__)
_LOGGERS: Final = ("a2a.server", "a2a.compat")


def make_a2a(
    dispatcher: Dispatcher,
    web: HttpSettings,
    auth: AuthSettings,
    settings: A2aSettings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    loopback: bool = False,
) -> A2aApplication:
    """Build the application at `/a2a`; `loopback` is True if the server listens on loopback only."""
    with extra_needed("A2A", "a2a", "a2a", "google", "jsonrpc", "sse_starlette"):
        from bespeak.faces.a2a.calls import SkillCalls  # noqa: PLC0415
        from bespeak.faces.a2a.handler import SkillHandler  # noqa: PLC0415 - slow to load
        from bespeak.faces.a2a.http import A2aApplication  # noqa: PLC0415
        from bespeak.faces.a2a.tasks import Tasks  # noqa: PLC0415
        from bespeak.faces.asking import Asking  # noqa: PLC0415
        from bespeak.faces.http.dispatched import DispatchBackend  # noqa: PLC0415
    for name in _LOGGERS:
        # The SDK logs the trace of every malformed request, which anybody can send.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not {"open", "token", "mtls"}.intersection(auth.modes):
        _logger.warning("A2A takes no signatures, and [auth] has no other mode: it serves only anonymous callers")
    server = dispatcher.server
    assert server.store is not None, "a server that is reached has a store"
    backend = DispatchBackend(dispatcher, server, "a2a")
    tasks = Tasks(server.store, retention=settings.retention, most=settings.most_tasks)
    calls = SkillCalls(backend, Asking(server.store, server.cases, ACCEPT, face="a2a"), tasks)

    def extended() -> Mapping[str, Any] | None:
        routes = server.routes
        if routes.policies.anonymous_discovery:
            return None
        return project_card_of(routes, web, Publishing(auth=auth, a2a=settings))

    guard = make_guard(INTERFACE, dispatcher, web, auth, limits=limits, loopback=loopback)
    return A2aApplication(SkillHandler(calls, tasks, extended), calls, tasks, backend, guard)


def mounted(a2a: A2aApplication, web: HttpSettings) -> dict[str, Application]:
    """Return the applications of A2A by path."""
    return mount(INTERFACE, a2a, web, _CORS)

"""bespeak: write an agent-facing contract once; serve it, prove it, publish it.

The names below, and the errors a client raises (bespeak.agent.client.errors), are the public API (VERSIONING.md).
They are imported when first used, so that `import bespeak` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bespeak.agent.client.connect import connect, connect_sync
    from bespeak.agent.client.errors import ServiceError
    from bespeak.agent.client.web_options import WebOptions
    from bespeak.app.authoring.app import App
    from bespeak.app.server.mounted import asgi
    from bespeak.contract.data_manifest import DataClass, DataManifest
    from bespeak.contract.deprecation import Deprecation
    from bespeak.contract.policy import MethodPolicy, Policies, Redirect
    from bespeak.contract.refusal import Refusal
    from bespeak.contract.vocabulary import Vocabulary
    from bespeak.errors import BespeakError, ConfigError, ContractError
    from bespeak.protocol.exchange.context import Context

__all__ = [
    "App",
    "BespeakError",
    "ConfigError",
    "Context",
    "ContractError",
    "DataClass",
    "DataManifest",
    "Deprecation",
    "MethodPolicy",
    "Policies",
    "Redirect",
    "Refusal",
    "ServiceError",
    "Vocabulary",
    "WebOptions",
    "asgi",
    "connect",
    "connect_sync",
]

_HOMES = {
    "App": "bespeak.app.authoring.app",
    "BespeakError": "bespeak.errors",
    "ConfigError": "bespeak.errors",
    "Context": "bespeak.protocol.exchange.context",
    "ContractError": "bespeak.errors",
    "DataClass": "bespeak.contract.data_manifest",
    "DataManifest": "bespeak.contract.data_manifest",
    "Deprecation": "bespeak.contract.deprecation",
    "MethodPolicy": "bespeak.contract.policy",
    "Policies": "bespeak.contract.policy",
    "Redirect": "bespeak.contract.policy",
    "Refusal": "bespeak.contract.refusal",
    "ServiceError": "bespeak.agent.client.errors",
    "Vocabulary": "bespeak.contract.vocabulary",
    "WebOptions": "bespeak.agent.client.web_options",
    "asgi": "bespeak.app.server.mounted",
    "connect": "bespeak.agent.client.connect",
    "connect_sync": "bespeak.agent.client.connect",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'bespeak' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)

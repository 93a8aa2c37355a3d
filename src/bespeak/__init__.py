"""bespeak: write an agent-facing contract once; serve it, prove it, publish it.

The names below are the public API (VERSIONING.md). They are imported when first used, so that `import bespeak` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bespeak.agent.acting.agent import Acted, Asked, Confirmation
    from bespeak.agent.acting.decision import ActingRules, Decision
    from bespeak.agent.acting.service_map import ServiceMap
    from bespeak.agent.acting.steps import Carried, Plan
    from bespeak.agent.client.errors import (
        AuthorityMissingError,
        BadRequestError,
        BusinessError,
        CallTimeoutError,
        ContractMismatchError,
        EndpointViolationError,
        ForbiddenError,
        GoneError,
        IdentityMismatchError,
        InvalidInputError,
        MethodNotAllowedError,
        MethodViolationError,
        NoCommonCatalogError,
        NotFoundError,
        NothingDiscoveredError,
        ProposalEscalatedError,
        ProposalPendingError,
        ProposalRejectedError,
        RateLimitedError,
        Reply,
        ReplyError,
        ServerFaultError,
        ServiceError,
        UnauthorizedError,
        UnavailableError,
        UnreachableError,
    )
    from bespeak.agent.client.negotiation import Synthesis
    from bespeak.agent.client.sender import RetryPolicy
    from bespeak.agent.client.service import ServiceClient
    from bespeak.agent.client.synchronous import SyncServiceClient
    from bespeak.agent.client.web_options import WebOptions
    from bespeak.agent.tools.tool_runner import Question, SyncToolList, ToolList
    from bespeak.app.authoring.app import App
    from bespeak.app.server.agent import Agent, SyncAgent
    from bespeak.app.server.connect import connect, connect_sync
    from bespeak.app.server.mounted import asgi
    from bespeak.contract.data_set import DataSet
    from bespeak.contract.endpoint import Deprecation
    from bespeak.contract.handler import Body, Needs, Refusal
    from bespeak.contract.participant import EntityChange, Price, Sold, Unknown
    from bespeak.contract.policy import MethodPolicy, Policies, Redirect
    from bespeak.contract.schema.file_schema import FileLimits
    from bespeak.contract.service import DataClass, DataManifest, Vocabulary
    from bespeak.errors import BespeakError, ConfigError, ContractError, RemoteProtocolError
    from bespeak.extensions.compute.models import Prediction
    from bespeak.extensions.data.query import DataQuery
    from bespeak.extensions.reports.report import Chart, Report, Table
    from bespeak.extensions.workflows.functions import Run
    from bespeak.extensions.workflows.journal import StepError, WaitTimeoutError
    from bespeak.protocol.exchange.messages import Context
    from bespeak.protocol.exchange.principal import Principal
    from bespeak.runtime.bindings.language_model import LanguageModelSettings
    from bespeak.runtime.functions.files import Download, Upload

__all__ = [
    "Acted",
    "ActingRules",
    "Agent",
    "App",
    "Asked",
    "AuthorityMissingError",
    "BadRequestError",
    "BespeakError",
    "Body",
    "BusinessError",
    "CallTimeoutError",
    "Carried",
    "Chart",
    "ConfigError",
    "Confirmation",
    "Context",
    "ContractError",
    "ContractMismatchError",
    "DataClass",
    "DataManifest",
    "DataQuery",
    "DataSet",
    "Decision",
    "Deprecation",
    "Download",
    "EndpointViolationError",
    "EntityChange",
    "FileLimits",
    "ForbiddenError",
    "GoneError",
    "IdentityMismatchError",
    "InvalidInputError",
    "LanguageModelSettings",
    "MethodNotAllowedError",
    "MethodPolicy",
    "MethodViolationError",
    "Needs",
    "NoCommonCatalogError",
    "NotFoundError",
    "NothingDiscoveredError",
    "Plan",
    "Policies",
    "Prediction",
    "Price",
    "Principal",
    "ProposalEscalatedError",
    "ProposalPendingError",
    "ProposalRejectedError",
    "Question",
    "RateLimitedError",
    "Redirect",
    "Refusal",
    "RemoteProtocolError",
    "Reply",
    "ReplyError",
    "Report",
    "RetryPolicy",
    "Run",
    "ServerFaultError",
    "ServiceClient",
    "ServiceError",
    "ServiceMap",
    "Sold",
    "StepError",
    "SyncAgent",
    "SyncServiceClient",
    "SyncToolList",
    "Synthesis",
    "Table",
    "ToolList",
    "UnauthorizedError",
    "UnavailableError",
    "Unknown",
    "UnreachableError",
    "Upload",
    "Vocabulary",
    "WaitTimeoutError",
    "WebOptions",
    "asgi",
    "connect",
    "connect_sync",
]

_HOMES = {
    "Acted": "agent.acting.agent",
    "ActingRules": "agent.acting.decision",
    "Agent": "app.server.agent",
    "App": "app.authoring.app",
    "Asked": "agent.acting.agent",
    "BespeakError": "errors",
    "Body": "contract.handler",
    "Carried": "agent.acting.steps",
    "Chart": "extensions.reports.report",
    "ConfigError": "errors",
    "Confirmation": "agent.acting.agent",
    "Context": "protocol.exchange.messages",
    "ContractError": "errors",
    "DataClass": "contract.service",
    "DataManifest": "contract.service",
    "DataQuery": "extensions.data.query",
    "DataSet": "contract.data_set",
    "Decision": "agent.acting.decision",
    "Deprecation": "contract.endpoint",
    "Download": "runtime.functions.files",
    "EntityChange": "contract.participant",
    "FileLimits": "contract.schema.file_schema",
    "LanguageModelSettings": "runtime.bindings.language_model",
    "MethodPolicy": "contract.policy",
    "Needs": "contract.handler",
    "Plan": "agent.acting.steps",
    "Policies": "contract.policy",
    "Prediction": "extensions.compute.models",
    "Price": "contract.participant",
    "Principal": "protocol.exchange.principal",
    "Question": "agent.tools.tool_runner",
    "Redirect": "contract.policy",
    "Refusal": "contract.handler",
    "RemoteProtocolError": "errors",
    "Report": "extensions.reports.report",
    "RetryPolicy": "agent.client.sender",
    "Run": "extensions.workflows.functions",
    "ServiceClient": "agent.client.service",
    "ServiceMap": "agent.acting.service_map",
    "Sold": "contract.participant",
    "StepError": "extensions.workflows.journal",
    "SyncAgent": "app.server.agent",
    "SyncServiceClient": "agent.client.synchronous",
    "SyncToolList": "agent.tools.tool_runner",
    "Synthesis": "agent.client.negotiation",
    "Table": "extensions.reports.report",
    "ToolList": "agent.tools.tool_runner",
    "Unknown": "contract.participant",
    "Upload": "runtime.functions.files",
    "Vocabulary": "contract.service",
    "WaitTimeoutError": "extensions.workflows.journal",
    "WebOptions": "agent.client.web_options",
    "asgi": "app.server.mounted",
    "connect": "app.server.connect",
    "connect_sync": "app.server.connect",
}
"""Module of each public name below `bespeak`. Names that are not listed are exceptions of the client."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bespeak' has no attribute {name!r}")
    return getattr(importlib.import_module(f"bespeak.{_HOMES.get(name, 'agent.client.errors')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

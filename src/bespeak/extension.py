"""Everything that an extension of your own is made of, under one name. Provisional: it may change between releases."""

from __future__ import annotations

from bespeak.contract.standard.definition import LINE, NAME, MethodError, StandardMethod
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import Anchor, BuiltIn, Cancelling, Extension, Gate, Opening, RecordKind
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutRecord, Record
from bespeak.state.store.store import Command, Conflict, Store
from bespeak.terminal import panels
from bespeak.terminal.target_store import visit_store

__all__ = [
    "LINE",
    "NAME",
    "Anchor",
    "BuiltIn",
    "Cancelling",
    "ChangeRecord",
    "Command",
    "Conflict",
    "Effects",
    "Envelope",
    "Extension",
    "FindRecord",
    "Gate",
    "ListRecords",
    "MethodError",
    "Opening",
    "PutRecord",
    "Record",
    "RecordKind",
    "Refused",
    "RoutedCall",
    "Server",
    "StandardMethod",
    "Store",
    "panels",
    "visit_store",
]

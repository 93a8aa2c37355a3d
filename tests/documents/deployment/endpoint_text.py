"""Endpoint files as texts."""

from __future__ import annotations

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.endpoint_toml import endpoint_of
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import toml_table


def parse_endpoint(text: str, file: str) -> tuple[Endpoint | None, list[Diagnostic]]:
    root = toml_table(text, file)
    return (None, [root]) if isinstance(root, Diagnostic) else endpoint_of(root, file)

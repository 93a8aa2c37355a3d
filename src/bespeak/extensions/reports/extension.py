"""The extension: REPORT."""

from __future__ import annotations

from typing import Final

from bespeak.contract.service import Service
from bespeak.extensions.reports.methods import DOCUMENT_PATH, FETCH_DOCUMENT, fetch_document, report
from bespeak.runtime.extension import BuiltIn, Extension, Opening


def _endpoints(service: Service) -> list[BuiltIn]:
    """Offer documents where reports are made."""
    return [BuiltIn(FETCH_DOCUMENT, DOCUMENT_PATH, fetch_document, listed=True)] if "REPORT" in service.methods else []


def _open(opening: Opening) -> None:
    opening.provide("report steps", opening.dispatcher)


reports: Final = Extension(name="reports", methods={"REPORT": report}, endpoints=_endpoints, open=_open)

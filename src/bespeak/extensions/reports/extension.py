"""The extension: REPORT."""

from __future__ import annotations

from typing import Final

from bespeak.contract.service import Service
from bespeak.extensions.reports.methods import DOCUMENT_PATH, FETCH_DOCUMENT, fetch_document, report
from bespeak.runtime.extension import BuiltIn, Extension


def _endpoints(service: Service) -> list[BuiltIn]:
    """Offer documents where reports are made."""
    return [BuiltIn(FETCH_DOCUMENT, DOCUMENT_PATH, fetch_document, listed=True)] if "REPORT" in service.methods else []


reports: Final = Extension(name="reports", methods={"REPORT": report}, endpoints=_endpoints)

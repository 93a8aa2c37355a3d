"""The extension: REPORT."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.reports.methods import DOCUMENT_PATH, FETCH_DOCUMENT, fetch_document, report
from bespeak.runtime.extension import BuiltIn, Extension

_DOCUMENTS: Final = BuiltIn(FETCH_DOCUMENT, DOCUMENT_PATH, fetch_document, listed=True)
reports: Final = Extension(
    name="reports",
    methods={"REPORT": report},
    endpoints=lambda service: [_DOCUMENTS] if "REPORT" in service.methods else [],
)

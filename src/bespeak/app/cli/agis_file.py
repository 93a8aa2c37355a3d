"""The AGIS document argument of a command: read it, or report its findings."""

from __future__ import annotations

from pathlib import Path

from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.contract.service import Service
from bespeak.documents.agis.document import read_agis
from bespeak.documents.agis.format import parse_agis
from bespeak.documents.agis.service import agis_service
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES


def open_agis(file: Path) -> Service:
    """Read the service of a document, without handlers. Raises CommandFailedError if the document has errors."""
    text = read_text(file, MAX_BYTES)
    tree = text if isinstance(text, Diagnostic) else parse_agis(text, str(file))
    if isinstance(tree, Diagnostic):
        print_findings([tree])
        raise CommandFailedError(f"{file} cannot be read")
    document, findings = read_agis(tree)
    print_findings(findings)
    if document is None or has_errors(findings):
        raise CommandFailedError(f"{file} has errors; fix them first")
    return agis_service(document)

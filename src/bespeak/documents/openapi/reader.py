"""Reader of OpenAPI descriptions of all versions. No text makes it raise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from bespeak.documents.openapi.description import Description
from bespeak.documents.openapi.document_text import parse_document
from bespeak.documents.openapi.notices import Notices
from bespeak.documents.openapi.operations import OperationReader
from bespeak.documents.openapi.rate_limit import read_rate
from bespeak.documents.openapi.references import References
from bespeak.documents.openapi.rules import NOT_IMPORTED, NOT_OPENAPI
from bespeak.documents.openapi.spot import Spot
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.garbage import without_collections

_VERSION: Final = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,3}))?(?:[.-].*)?", re.DOTALL)
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)


def read_description(
    text: bytes | str, source: str, *, base_url: str | None = None
) -> tuple[Description | None, list[Diagnostic]]:
    """Read the description in a text and collect findings; return None if it cannot be read.

    An error beside a description means that one part could not be read. `source` is the file or address of the text;
    references to files beside a local file are followed. Relative addresses are resolved against `base_url`, or against
    a source on the web.
    """
    with without_collections():
        return _read(text, source, base_url or (source if _WEB.match(source) else None))


def _read(text: bytes | str, source: str, base_url: str | None) -> tuple[Description | None, list[Diagnostic]]:
    document, found = parse_document(text, source, _local(source))
    if document is None:
        return None, found
    notices = Notices(source)
    for finding in found:
        notices.pass_on(finding)
    root = Spot(document.data, document)
    version = _version(root, notices)
    if version is None:
        return None, notices.all()
    paths = root.below("paths")
    if not isinstance(paths.value, dict):
        said = "is missing" if paths.value is None else f"is {brief(paths.value)}, not an object"
        if root.value.get("webhooks") and paths.value is None:
            said = "is missing, and webhooks are not imported"
        notices.error(NOT_OPENAPI, f"`paths` {said}", root, "A description without operations has nothing to import.")
        return None, notices.all()
    for name in ("webhooks", "x-webhooks"):
        if isinstance(root.value.get(name), dict) and root.value[name]:
            count = len(root.value[name])
            notices.info(
                NOT_IMPORTED, f"{count} webhook{' is' if count == 1 else 's are'} not imported", root.below(name)
            )
    reader = OperationReader(root, References(document, notices), notices, version=version, base_url=base_url)
    operations = tuple(reader.read())
    if not operations:
        notices.warning(NOT_OPENAPI, "no path has an operation", paths)
    info, contact = root.below("info"), root.below("info", "contact")
    made = Description(
        openapi=root.text("openapi") or root.text("swagger"),
        title=info.text("title"),
        version=info.text("version"),
        description=info.text("description"),
        contact=contact.text("email") or contact.text("url"),
        source=source,
        rate=read_rate(root) or read_rate(info),
        operations=operations,
        schemes=reader.security.schemes,
    )
    return made, notices.all()


def _version(root: Spot, notices: Notices) -> tuple[int, int] | None:
    written = root.text("openapi") or root.text("swagger")
    found = _VERSION.fullmatch(written)
    if found is None:
        said = f"has the version {brief(written)}" if written else "has neither `openapi` nor `swagger`"
        notices.error(
            NOT_OPENAPI, f"the document {said}", root, 'A description starts with openapi: "3.1.0" or the like.'
        )
        return None
    version = (int(found[1]), int(found[2] or 0))
    if version[0] == 2:
        return (2, 0)
    if version[0] != 3:
        notices.error(NOT_OPENAPI, f"version {brief(written)} is not understood", root, "Convert it to 3.1 or 3.0.")
        return None
    if version > (3, 1):
        notices.info(NOT_OPENAPI, f"version {brief(written)} is read as 3.1", root)
    return version


def _local(source: str) -> Path | None:
    """Return the path of a source that is a file."""
    if _WEB.match(source):
        return None
    try:
        path = Path(source)
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None

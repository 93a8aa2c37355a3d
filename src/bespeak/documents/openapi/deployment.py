"""A whole import: the files of a deployment from an OpenAPI description."""

from __future__ import annotations

from collections.abc import Sequence

from bespeak.contract.catalog.bundled import load_bundled
from bespeak.documents.adoption.deployment import Imported, make_deployment
from bespeak.documents.adoption.facade import Origin
from bespeak.documents.adoption.guess import LeftOut
from bespeak.documents.openapi.description import Description
from bespeak.documents.openapi.facade import make_facades


def import_description(description: Description, notes: Sequence[LeftOut] = ()) -> Imported:
    """Make the deployment of a description. `notes` lists the parts that the reader skipped or changed."""
    facades, left_out = make_facades(description, load_bundled())
    origin = Origin(
        command="openapi",
        form="an OpenAPI description",
        title=description.title,
        version=description.version,
        description=description.description,
        contact=description.contact,
        source=description.source,
        rate=description.rate,
    )
    return make_deployment(origin, facades, left_out, notes)

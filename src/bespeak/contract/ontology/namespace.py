"""Names of the core ontology under a base IRI (IoA 6.1)."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from bespeak.protocol.fault import Fault
from bespeak.text.diagnostics.brief import brief

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
OWL: Final = "http://www.w3.org/2002/07/owl#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
SKOS: Final = "http://www.w3.org/2004/02/skos/core#"
SHACL: Final = "http://www.w3.org/ns/shacl#"
OBO: Final = "http://www.geneontology.org/formats/oboInOwl#"

MOST_IRI: Final = 2_048
"""Most characters of an IRI."""

# Characters that RFC 3987 excludes from IRIs; an escaped control character is as hostile as a plain one.
_ABSOLUTE: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\x00-\x20\x7f-\xa0<>\"{}|^`\\\u2028\u2029\ud800-\udfff]+"
)
_ESCAPED_CONTROL: Final = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")


class Namespace(msgspec.Struct, frozen=True):
    """The IRIs of the core ontology and of its documents. The draft's own base is a placeholder."""

    base: str = "https://ex.org/"

    @property
    def terms(self) -> str:
        """Namespace of the classes and properties, the prefix `ioa:`."""
        return f"{self.base}ioa/semantic#"

    @property
    def context(self) -> str:
        """IRI of the base JSON-LD context."""
        return f"{self.base}ctx"

    @property
    def core(self) -> str:
        """IRI of the core ontology, as the examples of the draft name it."""
        return f"{self.base}onto/agent-core"

    def __call__(self, name: str) -> str:
        """Return the IRI of a class or property of the core."""
        return self.terms + name

    def name_of(self, iri: str) -> str:
        """Return the name of a core term, or an empty string for another IRI."""
        return iri[len(self.terms) :] if iri.startswith(self.terms) else ""


DEFAULT: Final = Namespace()


def parse_base(text: str) -> Namespace | Fault:
    """Parse the base IRI of the core ontology."""
    if not is_iri(text) or not text.endswith("/"):
        return Fault(f"the base must be an absolute IRI that ends in '/'; got {brief(text)}")
    return Namespace(text)


def is_iri(text: str) -> bool:
    """Return True for an absolute IRI of bounded length without control characters, escaped or not."""
    return len(text) <= MOST_IRI and _ABSOLUTE.fullmatch(text) is not None and not _ESCAPED_CONTROL.search(text)

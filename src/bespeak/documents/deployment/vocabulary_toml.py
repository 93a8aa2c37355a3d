"""`[vocabulary]` and `[data_manifest]` of a bespeak.toml: what an AGIS document says beyond its endpoints (AGIS 8)."""

from __future__ import annotations

from bespeak.contract.data_manifest import DataClass, DataManifest
from bespeak.contract.vocabulary import Vocabulary
from bespeak.text.reading.rules import MISSING_KEY
from bespeak.text.reading.table import Table


def read_vocabulary(root: Table) -> Vocabulary | None:
    """The vocabulary, if there is one. It lists no verbs: those are the endpoints' own."""
    block = root.table("vocabulary")
    if block is None:
        return None
    vocabulary = Vocabulary(
        domain=block.text("domain"),
        namespace=block.text("namespace"),
        version=block.text("version"),
        negotiable=block.boolean("negotiable") or False,
    )
    if vocabulary.negotiable and not root.has("data_manifest"):
        block.findings.error(
            MISSING_KEY,
            "`data_manifest` is missing, which `negotiable = true` asks for (AGIS 8.2)",
            block.pointer("negotiable"),
            "Write a [[data_manifest.available_data]] for each class of data agents may negotiate about.",
        )
    block.finish()
    return vocabulary


def read_data_manifest(root: Table) -> DataManifest | None:
    """The data manifest, if there is one."""
    block = root.table("data_manifest")
    if block is None:
        return None
    manifest = DataManifest(
        available_data=tuple(_data_class(entry) for entry in block.tables("available_data")),
        pre_auth_discovery=block.boolean("pre_auth_discovery"),
    )
    block.finish()
    return manifest


def _data_class(entry: Table) -> DataClass:
    found = DataClass(
        name=entry.need_text("class", "Name the class of data, like customer-profile."),
        description=entry.text("description") or "",
        formats=entry.texts("formats"),
        sensitivity=entry.text("sensitivity"),
        requires_authorization=entry.boolean("requires_authorization"),
    )
    entry.finish()
    return found

"""Vocabulary block of an AGIS document: the verbs of a service and their domain (AGIS 8.2)."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak.text.reading.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The vocabulary of the service (AGIS 8.2): its domain and version. The verbs are those of the endpoints."""

    declared_verbs: tuple[str, ...] = ()
    domain: str | None = setting(None, "The field of the service.")
    namespace: str | None = setting(
        None, "A prefix that tells verbs of several services apart: `logistics` in `logistics.DISPATCH`."
    )
    version: str | None = setting(None, "The version of the vocabulary.")
    negotiable: bool = setting(False, "Agents may propose endpoints within the data manifest.")

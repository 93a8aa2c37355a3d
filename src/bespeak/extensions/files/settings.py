"""Settings of files: `[files]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bespeak.text.reading.settings import setting

_DAY = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """Where files of calls are kept, for how long, and how many bytes of them."""

    folder: Path | None = setting(
        None,
        "A folder of this machine for the server alone; its processes share it. Without it: a private folder for "
        "temporary files.",
        kind="path",
    )
    ttl: float = setting(
        3600, "Seconds after which a file that was uploaded to be named in a call is removed.", bounds=(1, 30 * _DAY)
    )
    max_bytes: int = setting(100_000_000, "Maximum size of one such file.", bounds=(1, 10**12))
    per_agent: int = setting(500_000_000, "Maximum size of all such files of one agent.", bounds=(1, 10**13))
    total: int = setting(5_000_000_000, "Maximum size of all such files.", bounds=(1, 10**14))
    inline: int = setting(
        262_144,
        "Maximum size of a download that is sent inside a JSON answer; a larger one is stored.",
        bounds=(0, 10**7),
    )

"""A service with files on a real port, and clients of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import httpx

from bespeak import App, Download, FileLimits, Policies, Upload
from bespeak.app.server.assembly import Keeper, now
from bespeak.app.server.http_face import build_middleware, make_face
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import Target, load_app
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.extensions.files.settings import FileSettings
from bespeak.faces.http.face import HttpFace
from bespeak.faces.http.server import HttpServer
from bespeak.faces.limits import Capacity
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.store.settings import CaseSettings, open_store

ANN, BOB = "a" * 64, "b" * 64
LIMIT = 200_000
Limited = Annotated[Upload, FileLimits(max_bytes=LIMIT, media_types=["application/pdf", "image/*"])]
PDF = {"document": ("scan.pdf", b"%PDF-1", "application/pdf")}


@dataclass
class Scan:
    name: str
    media_type: str
    size: int
    sha256: str
    language: str
    pages: int


@dataclass
class Bundle:
    title: str
    files: list[Download]


def make_app(**policies: Any) -> App:
    app = App(
        "Documents",
        server_id="docs.example",
        operator="Acme",
        contact="ops@acme.example",
        policies=Policies(scope_required_for_invocation=False, **policies),
    )

    @app.endpoint("SCAN", "/documents", impact="informational", confidence=1.0)
    async def scan(document: Limited, language: str = "en", pages: int = 1) -> Scan:
        """Read the text of a document.

        Outcome: A scan with the text of the document is returned.
        """
        assert b"".join([part async for part in document.achunks(4_099)]) == await document.aread()
        return Scan(document.name, document.media_type, document.size, document.sha256, language, pages)

    @app.endpoint("ARCHIVE", "/documents/{shelf}", impact="irreversible", confidence=1.0)
    def archive(shelf: str, documents: list[Upload], cover: Upload | None = None) -> dict[str, list[str]]:
        """Keep documents on a shelf.

        Outcome: The documents are on the shelf and their contents are returned.
        """
        contents = [b"".join(document.chunks()).decode() for document in documents]
        return {"kept": [shelf, *contents, *([] if cover is None else [cover.read().decode()])]}

    @app.endpoint("EXPORT", "/documents", impact="reversible", confidence=1.0)
    def export(size: int = 5, name: str = "page.txt") -> Download:
        """Return a document as a file.

        Outcome: The file of the document is returned.
        """
        return Download(b"x" * size, name=name)

    @app.endpoint("FETCH", "/documents", impact="informational", confidence=1.0)
    def bundle() -> Bundle:
        """Return documents together.

        Outcome: A bundle with each document is returned.
        """
        return Bundle("two", [Download(b"one", name="1.bin"), Download(b"2" * 300_000, name="2.bin")])

    @app.endpoint("REMOVE", "/documents", impact="irreversible", confidence=1.0, scopes=["documents:remove"])
    def remove(listed: Upload) -> dict[str, int]:
        """Remove the documents that a list names.

        Outcome: The documents are removed and their number is returned.
        """
        return {"removed": len(listed.read().splitlines())}

    return app


@dataclass
class Desk:
    """A service that is being served."""

    web: httpx.AsyncClient
    port: int
    folder: Path
    dispatcher: Dispatcher
    face: HttpFace

    @property
    def kept(self) -> list[str]:
        """The names of all files on disk."""
        return sorted(path.name for path in self.folder.glob("*"))

    async def settled(self) -> list[str]:
        """Wait until no part of an upload is on disk; return what else is there."""
        async with asyncio.timeout(20):
            while any(name.endswith(".part") for name in self.kept):
                await asyncio.sleep(0.01)
        return self.kept

    async def store(self, content: bytes = b"%PDF-1", agent: str = ANN, name: str = "scan.pdf") -> str:
        """Upload a file; return its id."""
        sent = {"file": (name, content, "application/pdf")}
        answer = await self.web.post("/files", files=sent, headers={"Agent-ID": agent})
        assert answer.status_code == 201, answer.text
        reference: str = answer.json()["file"]
        return reference


@asynccontextmanager
async def serving(
    folder: Path,
    app: App | None = None,
    *,
    http: HttpSettings | None = None,
    cases: CaseSettings | None = None,
    capacity: Capacity | None = None,
    **files: Any,
) -> AsyncIterator[Desk]:
    target: Target = load_app(app or make_app(), folder)
    settings = FileSettings(folder=folder / "files", **files)
    document = replace(target.document, cases=cases or CaseSettings(), extension_tables={"files": settings})
    target = replace(target, document=document)
    web = http or HttpSettings()
    keeper = Keeper(assemble_target(target, now()), open_store("memory", role="sole", durability="full"), document)
    await keeper.start()
    face = make_face(keeper.dispatcher, web, loopback=True)
    server = HttpServer(face, build_middleware(face, web), capacity=capacity)
    try:
        [(_, port)] = await server.start("127.0.0.1", 0)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            yield Desk(client, port, folder / "files", keeper.dispatcher, face)
    finally:
        await server.close()
        await keeper.stop()

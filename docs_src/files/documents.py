from dataclasses import dataclass
from typing import Annotated

from bespeak import App, Download, FileLimits, Policies, Upload

app = App(
    "Acme Documents",
    server_id="documents.example",
    operator="Acme",
    contact="ops@acme.example",
    policies=Policies(scope_required_for_invocation=False),
)
Page = Annotated[Upload, FileLimits(max_bytes=5_000_000, media_types=["text/*", "application/pdf"])]


@dataclass
class Counted:
    name: str
    media_type: str
    words: int


@app.endpoint("SCAN", "/documents", impact="informational", confidence=1.0)
def count_words(document: Page, shortest: int = 1) -> Counted:
    """Count the words of a document.

    Outcome: The name of the document and the number of its words are returned.

    Args:
        document: The document to read.
        shortest: Shorter words are not counted.
    """
    words = [word for word in document.read().split() if len(word) >= shortest]
    return Counted(document.name, document.media_type, len(words))


@app.endpoint("EXPORT", "/documents", impact="informational", confidence=1.0)
def export_table(rows: int) -> Download:
    """Write a table of squares as a file.

    Outcome: A CSV file with the squares of the first numbers is returned.
    """
    lines = [f"{number},{number * number}" for number in range(1, rows + 1)]
    return Download("\n".join(lines).encode(), name="squares.csv", media_type="text/csv")

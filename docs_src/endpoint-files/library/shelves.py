from datetime import date, timedelta
from uuid import UUID

from bespeak import Refusal

TITLES = {"9780140449334": "Meditations", "9780199536368": "The Voyage of the Beagle"}
ASIDE: dict[str, UUID] = {}


def find_books(words: str) -> dict[str, list[dict[str, str]]]:
    wanted = words.lower().split()
    return {
        "books": [
            {"isbn": isbn, "title": title}
            for isbn, title in TITLES.items()
            if all(word in title.lower() for word in wanted)
        ]
    }


def set_aside(isbn: str, reader: UUID) -> dict[str, str]:
    if isbn not in TITLES:
        raise Refusal("book_unknown", f"The library has no {isbn}.")
    if ASIDE.setdefault(isbn, reader) != reader:
        raise Refusal("book_set_aside", "Somebody else was first.")
    return {"until": str(date.today() + timedelta(days=7))}

from collections.abc import AsyncIterator

from bespeak import App, Context

app = App("Library", server_id="library.example", operator="Town Library", contact="desk@library.example")


@app.lifespan
async def resources() -> AsyncIterator[dict[str, int]]:
    # A connection pool, an HTTP client, a model: whatever the handlers share.
    loans = {"0441013597": 0}
    yield loans
    loans.clear()


# In the event loop, one call at a time: two threads must not count the same loans.
@app.endpoint("RESERVE", "/books/{isbn}", impact="reversible", scopes=["books:lend"], inline=True)
def reserve_book(isbn: str, context: Context) -> dict[str, int]:
    """Reserve a book for the caller.

    Outcome: The book is reserved and its number of loans is returned.
    """
    context.state[isbn] += 1
    return {"loans": context.state[isbn]}

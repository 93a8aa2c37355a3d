"""The dispatcher: Request to gates to handler to Response."""

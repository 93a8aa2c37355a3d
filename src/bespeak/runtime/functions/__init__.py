"""Python functions as handlers: signatures to schemas, JSON to arguments."""

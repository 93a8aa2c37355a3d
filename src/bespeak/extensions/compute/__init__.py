"""Computing: results derived from rows, documents and numbers that are given or named."""

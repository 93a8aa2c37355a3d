"""Data sets: rows of functions, databases and files, read by steps of compositions (AGIS 8.3)."""

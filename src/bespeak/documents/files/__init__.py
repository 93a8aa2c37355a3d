"""Files on disk: reading with limits, and replacement in one step."""

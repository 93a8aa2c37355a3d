"""Files on disk: reading with limits, and atomic replacement."""

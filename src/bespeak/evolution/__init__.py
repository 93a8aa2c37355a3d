"""What changed between two catalogs, and which deployment it breaks."""

"""What changed between two catalogs or two contracts, and whom it breaks."""

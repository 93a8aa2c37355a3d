"""Changes between two catalogs or two contracts, and the clients they break."""

"""The HTTP face: the same contract and the same dispatcher for HTTP clients."""

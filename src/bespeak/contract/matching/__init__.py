"""Matching of needs in words with endpoints: by words, by the verb, and by vectors."""

from bespeak.contract.matching.endpoint_index import EndpointIndex, Evidence, Match, Part

__all__ = ["EndpointIndex", "Evidence", "Match", "Part"]

"""Integration: data of other systems brought into collections of agents."""

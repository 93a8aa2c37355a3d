"""MCP servers that endpoints call: their processes, connections and tools."""

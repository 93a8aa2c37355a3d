"""Messages between agents: what is kept of each, and how it reaches its recipients."""

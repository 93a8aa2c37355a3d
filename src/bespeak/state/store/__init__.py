"""What must outlive a request: named commands over SQLite or PostgreSQL."""

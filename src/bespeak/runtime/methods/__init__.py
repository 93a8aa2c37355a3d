"""The methods every server has, registered like any other endpoint."""

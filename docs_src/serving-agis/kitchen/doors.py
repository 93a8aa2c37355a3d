def seat_party(number: int) -> dict[str, str]:
    return {"name": f"party {number}"}

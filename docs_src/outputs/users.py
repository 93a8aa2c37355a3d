from dataclasses import dataclass

from bespeak import App

app = App(
    "Users",
    server_id="users.example",
    operator="Acme",
    contact="ops@acme.example",
)


@dataclass
class User:
    name: str


@dataclass
class UserInDb(User):
    password_hash: str


@app.endpoint("FETCH", "/user", impact="informational", confidence=1.0)
def load_user() -> User:
    """Load the user.

    Outcome: The user is returned.
    """
    return UserInDb("Ada", password_hash="$2b$12$3euPcmQFCiblsZeEu5s7p")

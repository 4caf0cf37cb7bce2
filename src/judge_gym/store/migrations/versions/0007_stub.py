"""Stub."""

revision = "0007"
down_revision = "0006"
only_adds = True


def upgrade() -> None:
    """Nothing."""

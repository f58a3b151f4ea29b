"""unstuck signing …: the keys that sign jobs."""

from __future__ import annotations

from unstuck.cli import options
from unstuck.cli.signing_revocations import revocations, revoke, unrevoke

app = options.group("Signing keys: revoke them, take that back, list what is revoked.")

app.command()(revocations)
app.command()(revoke)
app.command()(unrevoke)

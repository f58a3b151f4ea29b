"""unstuck signing …: the keys that sign jobs."""

from __future__ import annotations

from unstuck.cli import options
from unstuck.cli.signing_keys import keys, new_key, sign, verify
from unstuck.cli.signing_revocations import revocations, revoke, unrevoke

app = options.group("Signing keys: make them, list them, sign and verify a submit; revoke them, take that back.")

app.command("new-key")(new_key)
app.command()(keys)
app.command()(sign)
app.command()(verify)
app.command()(revocations)
app.command()(revoke)
app.command()(unrevoke)

"""docs/guard.md works as written, on both databases."""

from __future__ import annotations

import re

from tests.cli.command import ROOT, Command
from tests.cli.test_order_guide import run
from unstuck.model.guard import SETTINGS

GUIDE = (ROOT / "docs" / "guard.md").read_text()
WEBHOOKS = (ROOT / "docs" / "webhooks.md").read_text()
HOOKS = (ROOT / "docs" / "hooks.md").read_text()
SCHEDULES = (ROOT / "docs" / "schedules.md").read_text()
SHELL: list[str] = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)
[CODE] = re.findall(r"```python\n# press.py\n(.*?)```", GUIDE, re.S)


def test_the_guide_runs_as_written(unstuck: Command) -> None:
    (unstuck.directory / "press.py").write_text(CODE)
    settings, blacklist = SHELL

    assert run(unstuck, settings).splitlines()[-2:] == ["3", "stuck_circuit_breaker_threshold is 5 (the default)"]
    told = run(unstuck, blacklist)

    assert "Workflow is blacklisted. publish was shut out for every tenant by kim" in told
    assert "QUEUED" in told
    assert "[('manual:the printer burns', 'kim')]" in told
    assert "refused with exit code 4" in told
    assert "blacklist.remove" in told


def test_the_guides_name_every_setting_with_its_default() -> None:
    for name, setting in SETTINGS.items():
        if name.startswith("alert_"):
            continue  # test_alerts_guide.py has them
        default = "none" if setting.default in (None, []) else str(setting.default).lower()
        guides = {"schedule": SCHEDULES, "webhook": WEBHOOKS, "hook": HOOKS}
        guide = next((text for noun, text in guides.items() if name.startswith(noun)), GUIDE)
        assert f"| `{name}` | {default} |" in guide

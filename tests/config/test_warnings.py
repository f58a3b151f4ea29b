"""What is said at start and not refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.config import PRESETS, load


@pytest.mark.parametrize("preset", [None, *(name for name in PRESETS if name != "signed_remote")])
def test_neither_the_defaults_nor_a_preset_lets_the_janitor_convict_whom_the_supervisor_excuses(
    preset: str | None, tmp_path: Path
) -> None:
    settings = load({"preset": preset, "stop_time": 100_000}, environ={}, directory=tmp_path)
    assert settings.warnings() == []


def test_the_preset_of_what_is_not_built_warns_of_that_alone(tmp_path: Path) -> None:
    settings = load({"preset": "signed_remote", "stop_time": 100_000}, environ={}, directory=tmp_path)
    (warning,) = settings.warnings()
    assert "jobs are not signed" in warning


def test_a_process_that_may_stay_frozen_for_longer_than_a_lease_is_a_warning(tmp_path: Path) -> None:
    settings = load({"frozen": "31s", "stop_time": 100_000}, environ={}, directory=tmp_path)
    (warning,) = settings.warnings()
    assert "frozen=31 is above lease=30" in warning

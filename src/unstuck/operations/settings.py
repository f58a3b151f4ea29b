"""Runtime settings: kept in the database, in force everywhere from the moment they change."""

from __future__ import annotations

from typing import Any

from unstuck.model.errors import UnknownSetting
from unstuck.operations.table import PLATFORM_ADMIN, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.guard import SettingView


@operation(role=READER, limited="kept", whose="platform")
def list_(caller: Caller) -> Page[SettingView]:
    """All of them, with what they mean and who changed them."""
    return Page(items=tuple(SettingView.of(record) for record in caller.guard.settings()))


@operation(role=READER, limited="kept", whose="platform", errors=(UnknownSetting,))
def get(caller: Caller, name: str) -> SettingView:
    """One of them; `value` is what is in force."""
    return SettingView.of(caller.guard.get(name))


@operation(
    role=PLATFORM_ADMIN,
    effect="change",
    whose="platform",
    repeat="same",
    audited="settings.set",
    errors=(UnknownSetting,),
)
def set_(caller: Caller, name: str, value: Any) -> SettingView:
    """Change one. Every worker goes by it at once."""
    return SettingView.of(caller.guard.set(name, value))


@operation(
    role=PLATFORM_ADMIN,
    effect="change",
    whose="platform",
    repeat="same",
    audited="settings.set",
    errors=(UnknownSetting,),
    command="settings set",
)
def reset(caller: Caller, name: str) -> SettingView:
    """The default again."""
    return SettingView.of(caller.guard.reset(name))

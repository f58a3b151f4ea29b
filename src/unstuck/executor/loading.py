"""Finding the app: "module:attribute" or "path/file.py:attribute" -> its Registry. Here user code begins.

`python -m unstuck.executor.loading APP` prints the settings that the app's own code names, as JSON: so a supervisor
can learn its database without importing user code itself. What is no App is told by its exit code, and its type is
the last line on stdout.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from types import ModuleType

from unstuck.executor.process import die_with_parent
from unstuck.model.errors import InvalidInput, NotAnApp
from unstuck.model.workflow import Registry

NOT_AN_APP = 65  # of the exit codes one that neither Python nor a signal uses


def load_registry(app: str) -> Registry:
    """Import the app and take what it has registered."""
    found = load_app(app)
    registry = getattr(found, "registry", None)
    if not isinstance(registry, Registry):
        raise NotAnApp(app, type(found).__name__)
    return registry


def load_app(app: str) -> object:
    """Import it as `python` in the current directory would."""
    origin, _, attribute = app.rpartition(":")
    if not origin:
        origin, attribute = attribute, "app"
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = _file(origin) if origin.endswith(".py") else importlib.import_module(origin)
    found: object = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise InvalidInput(f"{origin} has no {attribute}; name the App as module:attribute") from None
    return found


def _file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise InvalidInput(f"there is no file {path}")
    folder, name = os.path.split(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name.removesuffix(".py"))


def _tell(app: str) -> int:
    try:
        found = load_app(app)
    except SystemExit:  # a script instead of an app: it would end without a word
        traceback.print_exc()
        return 1
    if not isinstance(getattr(found, "registry", None), Registry):
        print(type(found).__name__)
        return NOT_AN_APP
    print(json.dumps(getattr(found, "given", {})))
    return 0


if __name__ == "__main__":
    die_with_parent(os.getppid())  # an import that hangs must not stay behind when who asked is terminated
    sys.exit(_tell(sys.argv[1]))

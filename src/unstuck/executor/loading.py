"""Finding the app: "module:attribute" or "path/file.py:attribute" -> its Registry. Here user code begins.

`python -m unstuck.executor.loading APP` prints the settings that the app's own code names, as JSON: so a supervisor
can learn its database without importing user code itself.
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
from unstuck.model.errors import InvalidInput
from unstuck.model.workflow import Registry


def load_registry(app: str) -> Registry:
    """Import the app and take what it has registered."""
    found = load_app(app)
    registry = getattr(found, "registry", None)
    if not isinstance(registry, Registry):
        raise InvalidInput(f"{app} is not an App; its type is {type(found).__name__}")
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


if __name__ == "__main__":
    die_with_parent(os.getppid())  # an import that hangs must not stay behind when who asked is terminated
    try:
        print(json.dumps(getattr(load_app(sys.argv[1]), "given", {})))
    except SystemExit:  # a script instead of an app: it would end without a word
        traceback.print_exc()
        sys.exit(1)

"""Finding the app: "module:attribute" or "path/file.py:attribute" -> its Registry. Here user code begins.

`python -m unstuck.executor.loading APP` prints as JSON the settings that the app's own code names, and what its
decorators say of policies: so a command can learn its database without importing user code itself (a worker asks its
zygote). What is no App is told by its exit code, and its type is the last line on stdout.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import sys
import traceback
from types import ModuleType
from typing import Any

from unstuck.executor.process import die_with_parent
from unstuck.model.errors import InvalidInput, NotAnApp
from unstuck.model.policy import said
from unstuck.model.workflow import UNVERSIONED, Registry

#: Folders of what was installed, not written here.
_INSTALLED = frozenset({"site-packages", "dist-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}"})

NOT_AN_APP = 65  # an exit code that neither Python nor a signal uses


def load_registry(app: str) -> Registry:
    """Import the app and take what it has registered."""
    return registry_of(load_app(app), app)


def registry_of(found: object, app: str) -> Registry:
    registry = getattr(found, "_registry", None)
    if not isinstance(registry, Registry):
        raise NotAnApp(app, type(found).__name__)
    if registry.code_version == UNVERSIONED:
        registry.code_version = code_version(app)
    return registry


def settings_in(found: object) -> dict[str, Any]:
    """Those that the app's own code names."""
    return dict(getattr(found, "_given", {}))


def code_version(app: str) -> str:
    """Of an app that names no version: a digest of its own code, the same wherever the same code was imported.

    Its own are the imported modules of its package, and those beside it that nobody installed, by name and text."""
    name = app.rpartition(":")[0] or app
    top = os.path.basename(name).removesuffix(".py") if name.endswith(".py") else name.partition(".")[0]
    roots = [os.path.dirname(os.path.abspath(path)) + os.sep for path in _places(sys.modules.get(top))]
    digest = hashlib.sha256()
    for module_name, module in sorted(sys.modules.items()):
        if _is_own(module_name, module, top, roots):
            digest.update(f"{module_name}\n".encode() + _text(module) + b"\n")
    return f"code-{digest.hexdigest()[:12]}"


def _places(module: ModuleType | None) -> list[str]:
    """Where it is: its folders if it is a package, else its file."""
    return list(getattr(module, "__path__", ())) or [path for path in [getattr(module, "__file__", None)] if path]


def _is_own(name: str, module: object, top: str, roots: list[str]) -> bool:
    package, path = name.partition(".")[0], getattr(module, "__file__", None)
    if package == top:
        return True
    if package in ("unstuck", "__main__") or not isinstance(path, str) or _INSTALLED & set(path.split(os.sep)):
        return False
    return path.startswith(tuple(roots))


def _text(module: ModuleType) -> bytes:
    """Nothing of what has no source: its name counts."""
    path = getattr(module, "__file__", None)
    if not isinstance(path, str) or not path.endswith(".py"):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def load_app(app: str) -> object:
    """Import it as `python` in the current directory would."""
    origin, _, attribute = app.rpartition(":")
    if not origin:
        origin, attribute = attribute, "app"
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = _file(origin) if origin.endswith(".py") else _module(origin)
    found: object = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise InvalidInput(f"{origin} has no {attribute}; name the App as module:attribute") from None
    return found


def _module(origin: str) -> ModuleType:
    try:
        return importlib.import_module(origin)
    except ModuleNotFoundError as error:
        if not f"{origin}.".startswith(f"{error.name}."):  # something that the app itself imports
            raise
        # A service that was started in another folder than its author's is the usual reason.
        places = f"looked in {os.getcwd()}, in PYTHONPATH and among what is installed"
        raise ModuleNotFoundError(f"{error}; {places}", name=error.name) from None


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
    registry = getattr(found, "_registry", None)
    if not isinstance(registry, Registry):
        print(type(found).__name__)
        return NOT_AN_APP
    workflows = {name: json.loads(said(name, handler.said)) for name, handler in registry.handlers.items()}
    print(json.dumps({"settings": settings_in(found), "workflows": workflows}))
    return 0


if __name__ == "__main__":
    die_with_parent(os.getppid())  # an import that hangs must not outlive the process that asked for it
    code = _tell(sys.argv[1])
    sys.stdout.flush()
    # Whoever asked waits for our end: not for threads that the app has started, nor until all is torn down.
    os._exit(code)

"""Which packages the project in a folder uses: what its files of requirements name, and what its modules import."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_MODULES = 2_000
"""Modules of a project whose imports are read at most."""

MAX_MODULE_BYTES = 1_000_000
"""Size from which a module is not read: it was generated."""

OTHER_FOLDERS = frozenset({"__pycache__", "build", "dist", "env", "node_modules", "site-packages", "venv"})
"""Names of folders with code that is not the project's, besides those that begin with a dot or are environments."""

_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
"""The name at the beginning of a requirement (PEP 508)."""


@dataclass(frozen=True, slots=True)
class ProjectPackages:
    """The packages of a project, each with the first file that says so.

    `required` has normalised names of distributions, `imported` dotted names of modules. `unreadable` are the files
    of requirements that could not be read.
    """

    required: dict[str, str] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def find(self, distributions: Iterable[str], module: str) -> str | None:
        """Return the file that requires one of the distributions or imports the module; None without one."""
        required = (self.required[name] for name in distributions if name in self.required)
        return next(required, self.imported.get(module))


def read_project(folder: Path) -> ProjectPackages:
    """Return the packages of the project in a folder."""
    found = ProjectPackages()
    for file in _requirement_files(folder):
        try:
            names = [*_read_requirements(file)]
        except (OSError, ValueError):
            found.unreadable.append(_name(file, folder))
            continue
        for name in names:
            found.required.setdefault(re.sub(r"[-_.]+", "-", name).lower(), _name(file, folder))
    for file in _modules(folder):
        for module in _imports_of(file):
            if not _is_own(module, folder):
                found.imported.setdefault(module, _name(file, folder))
    return found


def _name(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def _requirement_files(folder: Path) -> Iterator[Path]:
    named = [folder / "pyproject.toml", folder / "Pipfile"]
    listed = [*folder.glob("requirements*.txt"), *folder.glob("requirements/*.txt")]
    yield from (file for file in [*named, *sorted(listed)] if file.is_file())


def _read_requirements(file: Path) -> Iterator[str]:
    """Yield the names of the distributions that a file requires."""
    text = file.read_text("utf-8-sig")
    if file.suffix == ".txt":
        yield from _names(line for line in text.splitlines() if not line.lstrip().startswith(("#", "-")))
    elif file.name == "Pipfile":
        document = tomllib.loads(text)
        yield from (name for table in ("packages", "dev-packages") for name in _table(document, table))
    else:
        yield from _read_pyproject(tomllib.loads(text))


def _read_pyproject(document: Mapping[str, Any]) -> Iterator[str]:
    project, poetry = _table(document, "project"), _table(document, "tool", "poetry")
    groups = [*_table(project, "optional-dependencies").values(), *_table(document, "dependency-groups").values()]
    listed = [project.get("dependencies"), *groups, _table(document, "tool", "uv").get("dev-dependencies")]
    yield from _names(entry for entries in listed if isinstance(entries, list) for entry in entries)
    yield from _table(poetry, "dependencies")
    for group in _table(poetry, "group"):
        yield from _table(poetry, "group", group, "dependencies")


def _table(document: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a table of a TOML document; an empty one where there is none."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _names(requirements: Iterable[object]) -> Iterator[str]:
    for requirement in requirements:
        if isinstance(requirement, str) and (named := _NAME.match(requirement)):
            yield named[1]


def _modules(folder: Path) -> Iterator[Path]:
    """Yield the modules of a project, those of its upper folders first."""
    left = MAX_MODULES
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_of_project(Path(place, name)))
        for name in sorted(files):
            if name.endswith(".py") and left > 0:
                left -= 1
                yield Path(place, name)


def _is_of_project(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in OTHER_FOLDERS:
        return False
    return not (folder / "pyvenv.cfg").exists()


def _imports_of(file: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports, and the packages around them; none of one that cannot be read."""
    try:
        if file.stat().st_size > MAX_MODULE_BYTES:
            return
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in named:
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _is_own(module: str, folder: Path) -> bool:
    """Return whether a module is one of the project, such as its own `agents`."""
    top = module.partition(".")[0]
    return any((base / name).exists() for base in (folder, folder / "src") for name in (top, f"{top}.py"))

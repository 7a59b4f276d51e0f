"""The packages of the system that some tests need; run as a program, it prints those that are missing.

It imports the standard library only, because it also runs before anything is installed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

PROGRAMS = {
    "chromium": ("chromium", "chromium-browser"),
    "chromium-driver": ("chromedriver",),
    "nodejs": ("node",),
    "npm": ("npm",),
    "postgresql": ("/usr/lib/postgresql/*/bin/initdb",),
    "redis-server": ("redis-server",),
}
"""The programs of each package, of which one must be found: on the PATH, or by the pattern of its path."""


def find_program(package: str) -> str | None:
    """Return the path of a package's program, the latest one of several; None when the package is not installed."""
    for program in PROGRAMS[package]:
        if program.startswith("/"):
            found = [str(path) for path in sorted(Path("/").glob(program[1:]))]
        else:
            found = [path for path in [shutil.which(program)] if path]
        if found:
            return found[-1]
    return None


def missing_packages() -> list[str]:
    """Return the packages that are not installed."""
    return [package for package in PROGRAMS if find_program(package) is None]


if __name__ == "__main__":
    print(" ".join(missing_packages()))

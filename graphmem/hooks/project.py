"""The project that a coding agent works on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

GIT_SECONDS = 1.0
"""Seconds that git may take."""

MAX_NAME_LENGTH = 100
"""Longest name of a domain, in characters."""


def find_project(folder: str) -> str | None:
    """Return the name of the git repository that a folder is in, in lower case; None outside one.

    The name is that of the remote `origin`, so that all clones and worktrees are one project, else that of the folder.
    """
    top = _ask_git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return None
    remote = _ask_git(folder, "config", "--get", "remote.origin.url") or ""
    last = re.split(r"[/:\\]", remote.rstrip("/"))[-1].removesuffix(".git")
    return (last or Path(top).name).strip().lower()[:MAX_NAME_LENGTH] or None


def _ask_git(folder: str, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

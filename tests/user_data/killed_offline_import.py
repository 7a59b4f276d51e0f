"""An offline import that is killed at a point: `killed_offline_import.py DATA_DIR TENANT EXPORTS POINT`.

It ends by SIGKILL once an export was `written`, when the tool has `imported` something, while indexes are `populated`,
or when the `data` has been moved to its place.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from graphmem.runtime.settings import Settings
from graphmem.user_data.offline_import import OfflineProgress, import_offline


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_move(name: str) -> None:
    replace = Path.replace

    def moved(path: Path, target: Path) -> Path:
        result = replace(path, target)
        if path.name == name:
            die()
        return result

    Path.replace = moved  # type: ignore[assignment, method-assign]


async def main(data_dir: Path, tenant: str, exports: Path, point: str) -> None:
    def report(of: str, done: int) -> None:
        if of == point and done > 0:
            die()

    die_after_move(point)
    progress = OfflineProgress(
        on_written=lambda done, _: report("written", done),
        on_imported=lambda done, _: report("imported", done),
        on_populated=lambda done, _: report("populated", done),
    )
    settings = Settings(data_dir=data_dir, bolt_port=0, http_port=0)
    await import_offline(settings, tenant, exports, progress)


if __name__ == "__main__":
    data_dir, tenant, exports, point = sys.argv[1:]
    asyncio.run(main(Path(data_dir), tenant, Path(exports), point))

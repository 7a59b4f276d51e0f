"""`graphmem` of a later version, whose folder `cypher` is another one: `newer_version.py CYPHER COMMAND…`."""

from __future__ import annotations

import sys
from pathlib import Path

from graphmem.cli import main
from graphmem.neo4j import migrations

if __name__ == "__main__":
    folder = Path(sys.argv.pop(1))
    migrations.cypher_root = lambda: folder
    main()

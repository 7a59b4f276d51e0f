"""The driver without the tables that graphmem drops."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_tables import shrink_driver_tables

LOOK = """
import neo4j.time
from neo4j._codec.packstream import RUST_AVAILABLE, v1, v2
from graphmem.neo4j.driver_tables import shrink_driver_tables

full = neo4j.time._DAYS_IN_MONTH
assert RUST_AVAILABLE and len(full) == 12 * 9999
assert all(len(table) == 2**16 for module in (v1, v2) for table in (module.PACKED_UINT_16, module.UNPACKED_UINT_16))
shrink_driver_tables()
assert all(neo4j.time._DAYS_IN_MONTH[month] == days for month, days in full.items())
assert not any(table for module in (v1, v2) for table in (module.PACKED_UINT_16, module.UNPACKED_UINT_16))
"""


def test_the_driver_has_these_tables_and_the_days_of_every_month_stay_the_same() -> None:
    looked = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False)
    assert looked.returncode == 0, looked.stderr


async def test_values_of_every_length_reach_the_database_and_come_back(graph: Graph) -> None:
    shrink_driver_tables()
    given = {
        "text": ["x" * length for length in (0, 15, 16, 255, 256, 65_535, 65_536)],
        "numbers": [
            sign * number for sign in (1, -1) for bits in (4, 7, 8, 15, 16, 31, 32, 62) for number in (2**bits,)
        ],
        "list": list(range(70_000)),
        "map": {f"key{number}": number for number in range(300)},
        "times": [datetime(year, month, 28, tzinfo=UTC) for year in (1, 1900, 2024, 9999) for month in (2, 12)],
    }
    rows = await graph.read(lambda transaction: transaction.run_text("RETURN $given AS given", {"given": given}))
    assert rows == [{"given": given}]

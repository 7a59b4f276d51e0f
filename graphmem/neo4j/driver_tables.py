"""Tables that the Neo4j driver fills when it is imported, 28 MB of which graphmem reads hardly an entry.

The driver has no setting for them. `tests/neo4j/test_driver_tables.py` fails when another version of it has other ones.
"""

from __future__ import annotations

from calendar import monthrange

import neo4j.time
from neo4j._codec.packstream import RUST_AVAILABLE, v1, v2


class DaysInMonths(dict[tuple[int, int], int]):
    """The days of the months that were asked for, by year and month."""

    def __missing__(self, month: tuple[int, int]) -> int:
        self[month] = days = monthrange(*month)[1]
        return days


def shrink_driver_tables() -> None:
    """Compute the days of a month when they are asked for, and drop what only the driver's packer in Python reads.

    Only a process of graphmem's own may call it: other users of the driver in the process have the same tables.
    """
    neo4j.time._DAYS_IN_MONTH = DaysInMonths()
    if RUST_AVAILABLE:
        v1.PACKED_UINT_16 = v2.PACKED_UINT_16 = []
        v1.UNPACKED_UINT_16 = v2.UNPACKED_UINT_16 = {}

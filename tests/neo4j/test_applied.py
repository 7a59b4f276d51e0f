"""Which revisions are known to be applied in full."""

from __future__ import annotations

from graphmem.neo4j.driver import AppliedRevisions


def test_a_revision_and_those_before_it_are_known_until_the_life_ends() -> None:
    applied = AppliedRevisions()
    assert not applied.include("default:mara", "first", 1)
    applied.note("default:mara", "first", 3)
    applied.note("default:mara", "first", 2)
    assert applied.include("default:mara", "first", 2)
    assert applied.include("default:mara", "first", 3)
    assert not applied.include("default:mara", "first", 4)
    assert not applied.include("default:ines", "first", 1)
    applied.note("default:mara", "second", 1)
    assert applied.include("default:mara", "second", 1)
    assert not applied.include("default:mara", "second", 2)
    assert not applied.include("default:mara", "first", 1)

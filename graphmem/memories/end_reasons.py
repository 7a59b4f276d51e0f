"""Why versions of memories end, as their history says it."""

MERGED_REASON = "merged"
"""The end reason of a memory that a consolidation run merged into another one."""

REWRITTEN_REASON = "written anew"
"""The end reason of a version of a profile that a consolidation run replaced."""

REVERTED_REASON = "reverted"
"""The end reason of a memory that a revert reopened or retired."""

HOLDS_REASON = "resolved: it holds"
"""The end reason of a contested version that was found to hold, and of the versions that it ended then."""

REFUTED_REASON = "resolved: it does not hold"
"""The end reason of a contested version that was found not to hold."""

CONTESTED_REASON = "contested by a more trusted source"
"""The end reason of a version that a late arrival of a more trusted source contradicts."""

SETTLED_REASON = "stated by a source that is trusted as much or more"
"""The end reason of a contested version whose statement became a memory of its own."""

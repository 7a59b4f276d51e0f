"""What the record of a run says: merges, contradictions, refusals; and how two exports differ. Pure."""

from __future__ import annotations

from typing import Any

from graphmem.consolidation.models import (
    Close,
    ConsolidationRun,
    Merge,
    ProposalVerdict,
    RunStatus,
)
from quality.consolidation.outcome import ExecutedMerge


def executed_merges(run: ConsolidationRun) -> list[ExecutedMerge]:
    """Return the merges that a run executed."""
    return [
        ExecutedMerge(tuple(reviewed.proposal.memory_ids), reviewed.result_id)
        for reviewed in run.proposals
        if isinstance(reviewed.proposal, Merge) and reviewed.verdict is ProposalVerdict.EXECUTED and reviewed.result_id
    ]


def closed_memory_ids(run: ConsolidationRun) -> frozenset[str]:
    """Return the ids of the plans that a run closed."""
    return frozenset(
        reviewed.proposal.memory_id
        for reviewed in run.proposals
        if isinstance(reviewed.proposal, Close) and reviewed.verdict is ProposalVerdict.EXECUTED
    )


def reported_contradictions(run: ConsolidationRun) -> list[frozenset[str]]:
    """Return the sets of memories that a run left alone and reported as contradictory."""
    return [frozenset(contradiction.memory_ids) for contradiction in run.contradictions]


def describe_refusals(run: ConsolidationRun) -> list[str]:
    """Return the proposals that a run refused, with the reasons, and why it was aborted."""
    refused = [
        f"{reviewed.proposal.action}: {reviewed.reason}"
        for reviewed in run.proposals
        if reviewed.verdict in (ProposalVerdict.REFUSED, ProposalVerdict.STALE)
    ]
    return refused + ([f"aborted: {run.reason}"] if run.status is RunStatus.ABORTED else [])


def find_differences(before: Any, after: Any, ignored: frozenset[str] = frozenset(), path: str = "") -> list[str]:
    """Return the paths at which two exports differ, apart from properties with an ignored name."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted((before.keys() | after.keys()) - ignored)
        return [
            text for key in keys for text in find_differences(before.get(key), after.get(key), ignored, f"{path}/{key}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [
            text for index, (one, other) in pairs for text in find_differences(one, other, ignored, f"{path}/{index}")
        ]
    return [] if before == after else [path or "/"]

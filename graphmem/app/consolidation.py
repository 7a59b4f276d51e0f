"""The components that the jobs and the service of consolidation share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from graphmem.app.components import Components
from graphmem.consolidation.batch_planning import ColdMemoryPolicy
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.guards import LossLimits
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore


@dataclass(frozen=True, slots=True)
class ConsolidationComponents:
    """The components of consolidation that its jobs and its service share."""

    runs: RunStore
    discovery: Discovery
    executor: RunExecutor

    @classmethod
    def build(cls, components: Components) -> ConsolidationComponents:
        """Build them from the shared components."""
        settings, graph = components.settings, components.graph
        runs = RunStore(graph)
        executor = RunExecutor(
            graph,
            components.facts,
            components.entities,
            runs,
            components.embedder,
            components.policy,
            LossLimits(
                settings.consolidation_max_ended, settings.consolidation_min_text, settings.consolidation_free_ended
            ),
        )
        discovery = Discovery(
            graph,
            batch_size=settings.consolidation_batch,
            max_batches=settings.consolidation_max_batches,
            cold_policy=ColdMemoryPolicy(
                timedelta(days=settings.consolidation_old_days), settings.consolidation_seldom
            ),
            max_profiles=settings.consolidation_max_profiles if components.model else 0,
        )
        return cls(runs, discovery, executor)

"""Node labels and relationship types of the graph."""

from __future__ import annotations

from enum import StrEnum


class RecordLabel(StrEnum):
    """Labels of nodes that an export lists under `records`: user data other than entities and facts."""

    ARCHIVED_EPISODE = "ArchivedEpisode"
    BEHAVIOR_PATTERN = "BehaviorPattern"
    CONTEXT_ITEM = "ContextItem"
    CONTEXT_USE = "ContextUse"
    EPISODIC = "Episodic"
    INTEREST_CANDIDATE = "InterestCandidate"
    LEARNED_INTENT = "LearnedIntent"
    LEARNED_PREFERENCE = "LearnedPreference"
    SESSION = "Session"
    SESSION_ARCHIVE = "SessionArchive"


class LinkType(StrEnum):
    """Types of the relationships that an export lists under `links`; each starts at a record."""

    HAS_ARCHIVE = "HAS_ARCHIVE"
    HAS_CONTEXT = "HAS_CONTEXT"
    HAS_EPISODE = "HAS_EPISODE"
    LEARNED_FROM = "LEARNED_FROM"
    MENTIONED_IN = "MENTIONED_IN"
    MENTIONS = "MENTIONS"
    NEXT_EPISODE = "NEXT_EPISODE"
    SEEN_IN = "SEEN_IN"


LISTS_OF_GRAPHITI = frozenset({"episodes", "entity_edges"})
"""Lists of facts and messages that Graphiti requires; stored even if empty."""

RESERVED_LABELS = frozenset(RecordLabel) | {
    "ApiKey",
    "Change",
    "ConsolidationRun",
    "EmbeddingSchema",
    "Entity",
    "EntityAlias",
    "Erasure",
    "Extraction",
    "IdempotentRequest",
    "Migration",
    "MigrationLease",
    "Placement",
    "PlacementTable",
    "QuarantinedStatement",
    "SharedSpace",
    "SpaceMember",
    "TenantInstructions",
    "TenantTrust",
    "TenantTypes",
    "User",
    "Webhook",
    "WebhookCursor",
    "WriteBarrier",
}
"""Labels that graphmem uses itself and that therefore cannot be entity types."""

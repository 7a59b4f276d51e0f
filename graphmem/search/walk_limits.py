"""How far facts are followed around entities, by every source of candidates. Pure."""

from __future__ import annotations

MAX_ENTITY_DEGREE = 200
"""Most facts of a named entity around which facts are searched: more do not lead to any of them in particular."""

MAX_START_FACTS = 40
"""Most facts of the named entities from which further steps are made."""

MAX_COMPUTED_FACTS = 100
"""Most facts of one step whose similarity to the question is computed, at 0.07 ms each."""

MAX_OUTGOING_FACTS = 50
"""Most facts of which an entity on the way is the subject for these to be followed."""

MAX_INCOMING_FACTS = 15
"""Most facts of which an entity on the way is the object for these to be followed."""

MAX_FOLLOWED_ENTITIES = 30
"""Most entities that are followed at one step; those whose way is most similar to the question are chosen."""

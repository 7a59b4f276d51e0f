"""The first requests after a start, made before a user makes them."""

from __future__ import annotations

import uuid

from graphmem.context.models import ContextRequest
from graphmem.context.service import ContextService
from graphmem.conversations.session import MessagesIn
from graphmem.ingestion.service import MessageService
from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import MemoryIn
from graphmem.memories.service import MemoryService
from graphmem.neo4j.tenant_context import use_graph, use_tenant
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import UserStore
from graphmem.user_data.forget import ForgetService

USERS = 3
"""Users for whom a context is built."""

REQUEST = ContextRequest(question="Who is the user?")
"""A request that loads the embedding model, has queries planned and reads every index."""


SAMPLE_TENANT = "graphmem-warm-up"
"""The tenant of users who exist while a server warms up."""

SAMPLE_MESSAGES = MessagesIn.model_validate(
    {
        "session_id": "warm-up",
        "messages": [{"role": "user", "content": "I am Ada, and I live in Turin."}],
        "extract": False,
    }
)
SAMPLE_MEMORY = MemoryIn(
    content="Ada lives in Turin", predicate="LIVES_IN", object=EntityIn(name="Turin", type="Place")
)
"""What a sample user says, and what is known of them."""


class WarmUp:
    """Makes the first requests after a start, so that no user waits for queries to be planned.

    A message and a memory of a sample user are stored, read and erased, so that writes are planned too. Contexts for
    users of the database change nothing.
    """

    def __init__(
        self,
        users: UserStore,
        contexts: ContextService,
        messages: MessageService,
        memories: MemoryService,
        forgetting: ForgetService,
    ) -> None:
        self._users = users
        self._contexts = contexts
        self._messages = messages
        self._memories = memories
        self._forgetting = forgetting

    async def run(self) -> int:
        """Build a context for some users, then write, read and erase what a sample user says; return their number."""
        with use_graph(HOME_GRAPH):
            found = await self._users.list_owners(limit=USERS)
        owners = [owner for owner in found if owner.tenant != SAMPLE_TENANT]
        for owner in owners:
            await self.read(owner)
        with use_tenant(SAMPLE_TENANT):
            for left in found if not owners else ():  # by a start that was cut short
                await self._forgetting.forget(left)
            await self.use_sample(Owner(SAMPLE_TENANT, str(uuid.uuid4())))
        return len(owners)

    async def read(self, owner: Owner) -> None:
        """Build a context for a user, which changes nothing."""
        with use_tenant(owner.tenant):
            await self._contexts.build(owner, REQUEST, reinforce=False)

    async def use_sample(self, owner: Owner) -> None:
        """Store, read and erase what a new user says; raise ConfigurationError where nobody can be erased."""
        self._forgetting.check_receipts()
        try:
            await self._messages.add(owner, SAMPLE_MESSAGES)
            await self._memories.save(owner, [SAMPLE_MEMORY])
            for _ in range(2):  # the second one reads the memory of active users
                await self._contexts.build(owner, REQUEST)
        finally:
            await self._forgetting.forget(owner)

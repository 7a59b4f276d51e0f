"""mem0's classes over graphmem: `from graphmem.compat.mem0 import Memory` in the place of `from mem0 import Memory`.

`Memory` and `AsyncMemory` open graphmem in this process, `MemoryClient` and `AsyncMemoryClient` talk to a server.
"""

from graphmem.compat.mem0.local import AsyncMem0, BlockingMem0
from graphmem.compat.mem0.remote import AsyncMem0Client, BlockingMem0Client

Memory, AsyncMemory = BlockingMem0, AsyncMem0
MemoryClient, AsyncMemoryClient = BlockingMem0Client, AsyncMem0Client

__all__ = ["AsyncMemory", "AsyncMemoryClient", "Memory", "MemoryClient"]

"""mem0's classes over graphmem: `from graphmem.compat.mem0 import Memory` instead of `from mem0 import Memory`.

`Memory` and `AsyncMemory` open graphmem in this process, `MemoryClient` and `AsyncMemoryClient` call a server.
"""

from graphmem.compat.mem0.local import AsyncMem0 as AsyncMemory
from graphmem.compat.mem0.local import BlockingMem0 as Memory
from graphmem.compat.mem0.remote import AsyncMem0Client as AsyncMemoryClient
from graphmem.compat.mem0.remote import BlockingMem0Client as MemoryClient

__all__ = ["AsyncMemory", "AsyncMemoryClient", "Memory", "MemoryClient"]

"""A program written for mem0. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/mem0_memory.py mara "I live in Lund."
python examples/mem0_memory.py mara "Where do I live?"
"""

import sys

from graphmem.compat.mem0 import MemoryClient


def main(user_id: str, said: str) -> None:
    """Say what is known about a question, and remember what was said."""
    client = MemoryClient()
    found = client.search(said, filters={"user_id": user_id}, top_k=3)["results"]
    print("\n".join(item["memory"] for item in found) or "Nothing is known about this yet.")
    client.add(said, user_id=user_id, infer=False)  # with a language model: infer=True
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])

"""The Anthropic client with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/anthropic_chat.py mara "I live in Lund."
python examples/anthropic_chat.py mara "Where do I live?"
"""

import sys

from anthropic import Anthropic

from graphmem.integrations import wrap_anthropic


def main(user_id: str, said: str) -> None:
    """Take one turn."""
    with wrap_anthropic(Anthropic(), user=user_id) as client:
        answer = client.messages.create(
            model="claude-sonnet-5-5", max_tokens=500, messages=[{"role": "user", "content": said}]
        )
        print("".join(block.text for block in answer.content if block.type == "text"))


if __name__ == "__main__":
    main(*sys.argv[1:3])

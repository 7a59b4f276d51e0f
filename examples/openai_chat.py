"""The OpenAI client with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/openai_chat.py mara "I live in Lund."
python examples/openai_chat.py mara "Where do I live?"
"""

import sys

from openai import OpenAI

from graphmem.integrations import wrap_openai


def main(user_id: str, said: str) -> None:
    """Take one turn."""
    with wrap_openai(OpenAI(), user=user_id) as client:
        answer = client.chat.completions.create(model="gpt-4.1-mini", messages=[{"role": "user", "content": said}])
        print(answer.choices[0].message.content)


if __name__ == "__main__":
    main(*sys.argv[1:3])

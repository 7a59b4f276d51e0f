"""What model calls and jobs cost."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Receipt(BaseModel):
    """What model calls or a whole job cost; `seconds` of a job are those from its last start to its end.

    Tokens are estimated at four characters each where the server does not count them.
    """

    model_config = ConfigDict(frozen=True)

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    embedded_texts: int = 0
    seconds: float = 0.0

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(
            llm_calls=self.llm_calls + other.llm_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            embedded_texts=self.embedded_texts + other.embedded_texts,
            seconds=self.seconds + other.seconds,
        )

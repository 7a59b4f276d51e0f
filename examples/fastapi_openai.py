"""A chat service of FastAPI with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

uvicorn fastapi_openai:app --app-dir examples
curl -N localhost:8000/chat -H "X-User: mara" --json '{"session_id": "monday", "said": "Where do I live?"}'
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import StreamingResponse
from openai import APIError, AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk
from pydantic import BaseModel, Field

from graphmem import GraphmemError
from graphmem.client import AsyncClient

MODEL = "gpt-4.1-mini"
INSTRUCTIONS = "Be brief and friendly."

MEMORY_SECONDS = 2.0
"""Seconds that a turn waits for memory; then it goes on without."""

TOKEN_BUDGET = 2_000
"""Tokens of a context and the question that it is for."""

QUESTION_CHARACTERS = 1_000
"""Characters of what was said that memory is asked about: the last ones, where the question mostly stands."""

log = logging.getLogger("chat")


class Message(BaseModel):
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    content: str


class Turn(BaseModel):
    """What the user says, and the messages before it."""

    session_id: str
    said: str = Field(min_length=1)
    before: list[Message] = []


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
    """Open one client of each kind for the life of the process."""
    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")
    async with AsyncOpenAI() as openai, AsyncClient(os.environ["GRAPHMEM_API_KEY"], url) as memory:
        yield {"openai": openai, "memory": memory}


app = FastAPI(lifespan=lifespan)


def find_user(x_user: Annotated[str, Header(min_length=1)]) -> str:
    """Return whose memory it is: take it from your login, never from what a browser can choose."""
    return x_user


async def hold_until_sent() -> AsyncIterator[AsyncExitStack]:
    """Yield a stack that is closed when the response has ended, also when the caller has gone."""
    async with AsyncExitStack() as stack:
        yield stack


@app.post("/chat")
async def reply(
    turn: Turn,
    request: Request,
    user_id: Annotated[str, Depends(find_user)],
    stack: Annotated[AsyncExitStack, Depends(hold_until_sent)],
) -> StreamingResponse:
    """Answer with what is known about the user, piece by piece, and remember the turn."""
    memory: AsyncClient = request.state.memory
    openai: AsyncOpenAI = request.state.openai
    known = await recall(memory, user_id, turn)
    messages: list[Any] = [
        {"role": "system", "content": f"{INSTRUCTIONS}\n\n{known}".rstrip()},
        *(message.model_dump() for message in turn.before),
        {"role": "user", "content": turn.said},
    ]
    try:
        stream = await openai.chat.completions.create(model=MODEL, messages=messages, stream=True)
    except APIError as error:
        raise HTTPException(502, "The model does not answer: try again later.") from error
    spoken = [Message(role="user", content=turn.said)]
    stack.push_async_callback(remember, memory, user_id, turn.session_id, spoken)
    await stack.enter_async_context(stream)  # closed first, so that a model whose reader has gone stops
    return StreamingResponse(pass_on(stream, spoken), media_type="text/plain; charset=utf-8")


async def recall(memory: AsyncClient, user_id: str, turn: Turn) -> str:
    """Return what is known that may help with a question; nothing when memory is down or slow."""
    try:
        async with asyncio.timeout(MEMORY_SECONDS):
            context = await memory.context(
                user_id,
                turn.said[-QUESTION_CHARACTERS:],
                session_id=turn.session_id,
                token_budget=TOKEN_BUDGET,
                recent_messages=False,  # they are sent to the model anyway
            )
    except (GraphmemError, TimeoutError) as error:
        log.warning("a turn is answered without memory: %s", str(error) or "it is slow")
        return ""
    return context.preamble


async def pass_on(stream: AsyncStream[ChatCompletionChunk], spoken: list[Message]) -> AsyncIterator[str]:
    """Yield the answer as it comes; add it to what was said when it is complete."""
    pieces: list[str] = []
    is_complete = False
    async for chunk in stream:
        for choice in chunk.choices:
            is_complete = is_complete or choice.finish_reason is not None
            if piece := choice.delta.content:
                pieces.append(piece)
                yield piece
    if is_complete and pieces:
        spoken.append(Message(role="assistant", content="".join(pieces)))


async def remember(memory: AsyncClient, user_id: str, session_id: str, spoken: list[Message]) -> None:
    """Store what was said, without the context; memories are extracted from it in the background."""
    try:
        await memory.add_messages(user_id, [message.model_dump() for message in spoken], session_id=session_id)
    except GraphmemError as error:
        log.warning("a turn is not remembered: %s", error)

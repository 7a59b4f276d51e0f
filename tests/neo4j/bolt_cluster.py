"""Members of a cluster, as far as a client can tell: proxies of the Bolt protocol before one server.

The members have the same data at any time, since it is that of the server. Who leads, and how a member fails while the
leader changes, is for the test to say.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from neo4j._codec.packstream import v1

packstream: Any = v1
"""How values are written in messages: the module of the driver, which has no types."""

RUN, BEGIN, COMMIT, RESET, GOODBYE, ROUTE = 0x10, 0x11, 0x12, 0x0F, 0x02, 0x66
"""Signatures of messages of a client."""

SUCCESS, IGNORED, FAILURE, RECORD = 0x70, 0x7E, 0x7F, 0x71
"""Signatures of messages of a server."""

NOT_A_LEADER = "Neo.ClientError.Cluster.NotALeader"
READ_ONLY = "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase"
"""How members refuse writes that the leader has to do."""

_GREETING = 20
"""Bytes with which a client begins: four of them and four proposals of a version."""

_MANIFEST, _VERSION = bytes((0, 0, 1, 0xFF)), bytes((0, 0, 0, 6))
"""The proposal to negotiate the version by further messages, and that of a version, by which a member replaces it."""


Moment = Literal["before", "after"]
"""When the connection of a commit breaks: before the server commits, or after it and before its answer arrives."""


@dataclass(frozen=True)
class Work:
    """What a member was asked to do: a query outside a transaction, or the beginning of one."""

    query: str | None
    is_read: bool
    bookmarks: Sequence[str]

    @property
    def seen(self) -> int:
        """The number of the latest transaction that the member must have before it answers; 0: any state will do."""
        return max(map(transaction_of, self.bookmarks), default=0)


class Member:
    """One address of a cluster.

    With a `refusal`, the code of an error, it refuses what is sent to it as to the leader. One that `lags` never has
    what a read must see, and lets it wait.
    """

    def __init__(self, cluster: BoltCluster) -> None:
        self.cluster = cluster
        self.refusal: str | None = None
        self.lags = False
        self.lost_commits = 0
        self._losing: Moment | None = None
        self._commits_until_loss = 0
        self.work: list[Work] = []
        self.connections: set[_Connection] = set()
        self.address = ""
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Accept connections, at `address` from now on."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        """Accept no more connections, and close those there are."""
        assert self._server
        self._server.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Close all connections, whatever they are at."""
        for connection in [*self.connections]:
            connection.close()

    def lose_commit(self, number: int, moment: Moment) -> None:
        """Close the connection of a commit, the next one (1) or a later one, before it is done or before its answer."""
        self._commits_until_loss, self._losing = number, moment

    def is_lost(self, moment: Moment) -> bool:
        """Return whether the connection of a commit is to be closed at this moment of it."""
        if self._losing != moment:
            return False
        self._commits_until_loss -= 1
        if self._commits_until_loss:
            return False
        self._losing = None
        self.lost_commits += 1
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            server_reader, server_writer = await asyncio.open_connection(*self.cluster.server)
            connection = _Connection(self, reader, writer, server_reader, server_writer)
            self.connections.add(connection)
            try:
                await connection.run()
            finally:
                self.connections.discard(connection)


class BoltCluster:
    """The members, the one of them that leads, and the latest transaction that any of them has committed."""

    def __init__(self, host: str, port: int, size: int) -> None:
        self.server = (host, port)
        self.members = [Member(self) for _ in range(size)]
        self.leader: Member | None = self.members[0]
        self.latest_commit = 0

    @property
    def uri(self) -> str:
        """The address by which a client finds the leader and the others."""
        return f"neo4j://{self.members[0].address}"

    def routing_table(self) -> dict[str, Any]:
        """Return what members answer when they are asked who does what."""
        everybody = [member.address for member in self.members]
        leading = [member.address for member in self.members if member is self.leader]
        following = [address for address in everybody if address not in leading]
        roles = {"ROUTE": everybody, "READ": following or everybody, "WRITE": leading}
        servers = [{"role": role, "addresses": addresses} for role, addresses in roles.items()]
        return {"rt": {"ttl": 300, "db": "neo4j", "servers": servers}}


@asynccontextmanager
async def cluster_before(uri: str, size: int = 2) -> AsyncIterator[BoltCluster]:
    """A cluster whose members pass on everything to the server of an address; the first one leads."""
    target = urlsplit(uri)
    assert target.hostname
    cluster = BoltCluster(target.hostname, target.port or 7687, size)
    for member in cluster.members:
        await member.start()
    try:
        yield cluster
    finally:
        for member in cluster.members:
            member.stop()


def transaction_of(bookmark: str) -> int:
    """Return the number of the transaction that a bookmark stands for."""
    data = base64.b64decode(bookmark.removeprefix("FB:") + "=" * (-len(bookmark.removeprefix("FB:")) % 4))
    unpacker = packstream.Unpacker(packstream.UnpackableBuffer(data[1:]))  # after the marker of what follows
    unpacker.unpack()  # the database
    return int(unpacker.unpack())


class _Connection:
    """Passes the messages of one client to the server, and answers those itself that a member fails with."""

    def __init__(
        self,
        member: Member,
        client_reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self._member = member
        self._client = (client_reader, client_writer)
        self._server = (server_reader, server_writer)
        self._unanswered: deque[int] = deque()
        self._answered = asyncio.Event()
        self._has_failed = False
        self._is_read = False
        self._is_in_transaction = False

    def close(self) -> None:
        """Close both sides, at once."""
        for _, writer in (self._client, self._server):
            writer.transport.abort()

    async def run(self) -> None:
        """Pass on the choice of the version, then messages until one side closes."""
        greeting = await self._client[0].readexactly(_GREETING)
        self._server[1].write(greeting.replace(_MANIFEST, _VERSION))
        self._client[1].write(await self._server[0].readexactly(4))
        pumps = [
            asyncio.create_task(self._pump(self._client[0], self._receive_of_client)),
            asyncio.create_task(self._pump(self._server[0], self._receive_of_server)),
        ]
        _, left = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in left:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        self.close()

    async def _pump(self, reader: asyncio.StreamReader, receive: Callable[[bytes], Awaitable[None]]) -> None:
        while True:
            await receive(await _read_message(reader))

    async def _receive_of_client(self, message: bytes) -> None:
        kind = message[1]
        if kind == RESET:
            self._has_failed = self._is_in_transaction = False
        elif self._has_failed and kind != GOODBYE:
            await self._answer(IGNORED)
            return
        if kind == ROUTE:
            await self._answer(SUCCESS, self._member.cluster.routing_table())
            return
        if kind in (BEGIN, RUN):
            self._note_work(kind, _fields_of(message))
        if kind == RUN and self._member.lags and self._is_read:
            await asyncio.Event().wait()
        if kind == RUN and self._member.refusal and not self._is_read:
            self._has_failed = True
            await self._answer(FAILURE, _failure(self._member.refusal))
            return
        if kind == COMMIT:
            self._is_in_transaction = False
            if self._member.is_lost("before"):
                self.close()
                return
        if kind != GOODBYE:
            self._unanswered.append(kind)
        await _write_message(self._server[1], message)

    def _note_work(self, kind: int, fields: list[Any]) -> None:
        if kind == RUN and self._is_in_transaction:
            return
        extra = fields[-1]
        self._is_read = extra.get("mode") == "r"
        self._is_in_transaction = kind == BEGIN
        query = fields[0] if kind == RUN else None
        self._member.work.append(Work(query, self._is_read, extra.get("bookmarks", ())))

    async def _receive_of_server(self, message: bytes) -> None:
        if message[1] != RECORD:
            asked = self._unanswered.popleft()
            if asked == COMMIT and message[1] == SUCCESS:
                cluster = self._member.cluster
                cluster.latest_commit = max(cluster.latest_commit, transaction_of(_fields_of(message)[0]["bookmark"]))
                if self._member.is_lost("after"):
                    self.close()
                    return
        await _write_message(self._client[1], message)
        self._answered.set()

    async def _answer(self, signature: int, metadata: dict[str, Any] | None = None) -> None:
        """Answer in place of the server, after what it has still to answer."""
        while self._unanswered:
            self._answered.clear()
            await self._answered.wait()
        await _write_message(self._client[1], _pack(signature, [] if metadata is None else [metadata]))


def _failure(code: str) -> dict[str, Any]:
    text = "No write operations are allowed directly on this database."
    return {"neo4j_code": code, "message": text, "gql_status": "08N07", "description": f"error: {text}"}


def _fields_of(message: bytes) -> list[Any]:
    unpacker = packstream.Unpacker(packstream.UnpackableBuffer(message))
    count, _ = unpacker.unpack_structure_header()
    return [unpacker.unpack() for _ in range(count)]


def _pack(signature: int, fields: list[Any]) -> bytes:
    buffer = packstream.Packer.new_packable_buffer()
    packstream.Packer(buffer).pack_struct(bytes((signature,)), fields)
    return bytes(buffer.data)


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    """Return the next message; its parts come with their sizes, and one of size 0 ends it."""
    parts: list[bytes] = []
    while True:
        size = int.from_bytes(await reader.readexactly(2))
        if size:
            parts.append(await reader.readexactly(size))
        elif parts:
            return b"".join(parts)


async def _write_message(writer: asyncio.StreamWriter, message: bytes) -> None:
    for start in range(0, len(message), 0xFFFF):
        part = message[start : start + 0xFFFF]
        writer.write(len(part).to_bytes(2) + part)
    writer.write(bytes(2))
    await writer.drain()

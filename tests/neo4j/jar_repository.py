"""A small repository of jars over real HTTP, which can interrupt downloads."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from graphmem.runtime.artifacts import Jar


class JarRepository:
    """The served jars, the received requests, and after how many bytes the next responses end."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.truncate_after: list[int] = []
        self.ignores_ranges = False
        self.address = ""

    def add(self, coordinates: str, content: bytes) -> Jar:
        """Publish a jar and lock it."""
        jar = Jar(coordinates, hashlib.sha256(content).hexdigest(), len(content))
        self.contents["/" + jar.repository_path] = content
        return jar


@contextmanager
def serve_repository() -> Iterator[JarRepository]:
    """Serve a repository on a free port."""
    repository = JarRepository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_range = self.headers.get("Range")
            repository.asked.append((self.path, asked_range))
            content = repository.contents.get(self.path)
            if content is None:
                return self.send_error(404)
            start = int(asked_range.removeprefix("bytes=").rstrip("-")) if asked_range else 0
            if start and not repository.ignores_ranges:
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                content = content[start:]
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: repository.truncate_after.pop(0)] if repository.truncate_after else content)
            return None

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    repository.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield repository
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

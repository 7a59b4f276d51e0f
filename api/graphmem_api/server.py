"""Serving the application with uvicorn."""

from __future__ import annotations

import uvicorn
from fastapi import FastAPI


def make_uvicorn_server(app: FastAPI, host: str, port: int) -> uvicorn.Server:
    """Return a server for the app, to be run with `await server.serve()`; port 0 takes a free one."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=20,
            lifespan="off",
        )
    )

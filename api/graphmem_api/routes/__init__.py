"""The routes, one module for each family."""

from graphmem_api.routes import (
    admin,
    context,
    entities,
    export,
    forget,
    health,
    importing,
    instructions,
    jobs,
    keys,
    memories,
    messages,
    search,
    ui,
)

ROUTERS = (
    health.public_router,
    health.metrics_router,
    ui.router,
    memories.read_router,
    memories.write_router,
    entities.router,
    search.router,
    messages.read_router,
    messages.write_router,
    messages.admin_router,
    jobs.read_router,
    jobs.write_router,
    context.router,
    export.router,
    importing.router,
    forget.router,
    keys.read_router,
    keys.write_router,
    admin.read_router,
    admin.write_router,
    instructions.read_router,
    instructions.write_router,
)
"""All routers of the API; the order decides where two routes match the same path."""

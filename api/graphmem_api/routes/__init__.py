"""The routes, a module for each family; the order matters where one path could be read as another."""

from graphmem_api.routes import admin, context, entities, health, jobs, keys, memories, messages, search, transfer, ui

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
    transfer.read_router,
    transfer.write_router,
    transfer.schema_router,
    transfer.forget_router,
    keys.read_router,
    keys.write_router,
    admin.read_router,
    admin.write_router,
)

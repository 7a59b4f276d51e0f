"""The routes, a module for each family; the order matters where one path could be read as another."""

from graphmem_api.routes import admin, context, entities, health, jobs, keys, memories, messages, search, transfer, ui

ROUTERS = (
    health.open_to_all,
    health.measures,
    ui.router,
    memories.reading,
    memories.writing,
    entities.router,
    search.router,
    messages.reading,
    messages.writing,
    messages.administering,
    jobs.reading,
    jobs.writing,
    context.router,
    transfer.reading,
    transfer.writing,
    transfer.formats,
    transfer.forgetting,
    keys.reading,
    keys.writing,
    admin.reading,
    admin.writing,
)

"""What all route modules share: the services of the process, and the prefix of a user's routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from graphmem.bootstrap import Services

USER_PATH = "/v1/users/{user_id:segment}"
"""Path of a user; `segment` lets an id hold any character."""


def _get_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


ServicesDep = Annotated[Services, Depends(_get_services)]
"""The services that the application was created for."""

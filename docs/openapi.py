"""Prints the OpenAPI document of the API, from which clients are generated: `python docs/openapi.py`."""

from __future__ import annotations

import json
from typing import cast

from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings

if __name__ == "__main__":
    print(json.dumps(create_app(cast(Services, None), Settings()).openapi(), ensure_ascii=False))

"""The optional dependencies of this package, and which of them the settings require."""

from __future__ import annotations

from importlib.util import find_spec

from graphmem.runtime import tracing
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import Settings

MODULES_BY_EXTRA = {
    "sentence-transformers": ("sentence_transformers",),
    "redis": ("cashews", "redis"),
    "graphiti": ("graphiti_core",),
    "otel": ("opentelemetry.sdk",),
    "evaluate": ("matplotlib",),
}
"""The modules that each extra installs; those of models are listed in `llm.providers`."""


def required_extras(settings: Settings) -> dict[str, str]:
    """Return the extras that the settings require, each with the setting that does."""
    required = {}
    if settings.embedder == "sentence-transformers":
        required["sentence-transformers"] = "GRAPHMEM_EMBEDDER"
    elif settings.rerank_model is not None:
        required["sentence-transformers"] = "GRAPHMEM_RERANK_MODEL"
    if settings.cache_url is not None:
        required["redis"] = "GRAPHMEM_CACHE_URL"
    if tracing.is_tracing_enabled():
        required["otel"] = "OTEL_EXPORTER_OTLP_ENDPOINT"
    return required


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    return [module for module in MODULES_BY_EXTRA[extra] if not _is_installed(module)]


def ensure_extras(settings: Settings) -> None:
    """Raise ConfigurationError when the settings require an extra that is not installed."""
    for extra, setting in required_extras(settings).items():
        if missing := missing_modules(extra):
            raise ConfigurationError(
                f"{setting} needs {', '.join(missing)}: run pip install 'graphmem[{extra}]', or unset {setting}."
            )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a parent package
        return False

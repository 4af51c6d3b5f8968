"""The files in docs/deploy agree with the commands, the settings and each other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from asgi import lifespan
from imagecall.middleware.cli import app as command
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.serving import upstream_app
from imagecall.middleware.settings import Settings, load_settings
from loopback import answering, ask, http_scope, raw_server
from serving import serve

TOP = Path(__file__).parent.parent
DEPLOY = TOP / "docs" / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
KUBERNETES: dict[str, Any] = {
    part["kind"]: part for part in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
}
POD: Any = KUBERNETES["Deployment"]["spec"]["template"]["spec"]
CONTAINER: Any = POD["containers"][0]
PORT = 8766


def variables(of: str) -> dict[str, Any]:
    """Return the variables of `serve` that a file sets."""
    match of:
        case "Dockerfile":
            return dict(re.findall(r"(IMAGECALL_\w+)=(\S+)", DOCKERFILE))
        case "compose":
            return dict(COMPOSE["services"]["imagecall"]["environment"])
        case _:
            return KUBERNETES["ConfigMap"]["data"] | {one["name"]: None for one in CONTAINER["env"]}


@pytest.mark.parametrize("of", ["Dockerfile", "compose", "kubernetes"])
def test_every_variable_is_one_that_serve_reads(of: str) -> None:
    serving = typer.main.get_group(command).commands["serve"]
    known = {option.envvar for option in serving.params if option.envvar}
    known |= {f"IMAGECALL_{name.upper()}" for name in Settings.model_fields}
    assert variables(of)
    assert variables(of).keys() <= known


@pytest.mark.parametrize("of", ["compose", "kubernetes"])
def test_every_value_is_one_that_its_setting_takes(of: str) -> None:
    given = {
        name.removeprefix("IMAGECALL_").lower(): re.sub(r"\$\{\w+:-(.*)\}", r"\1", value)
        for name, value in variables(of).items()
        if value is not None
    }
    ProxyApp(given.pop("upstream"))
    workers = int(given.pop("workers"))
    settings = load_settings(given)
    assert settings.store.startswith("redis://") or workers == 1
    assert settings.store.startswith("redis://")  # there are several pods, too


def test_all_know_the_same_port() -> None:
    assert f"IMAGECALL_PORT={PORT} " in DOCKERFILE
    assert f"EXPOSE {PORT}\n" in DOCKERFILE
    assert COMPOSE["services"]["imagecall"]["ports"] == [f"{PORT}:{PORT}"]
    [port] = CONTAINER["ports"]
    assert port == {"name": "http", "containerPort": PORT}
    assert KUBERNETES["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    servers = re.findall(r"server \S+:(\d+);", (DEPLOY / "nginx.conf").read_text())
    assert servers == [str(PORT)] * 2


def test_whoever_is_stopped_has_the_time_that_open_streams_are_given() -> None:
    pause = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = int(variables("kubernetes")["IMAGECALL_SHUTDOWN_GRACE"])
    assert POD["terminationGracePeriodSeconds"] > pause + grace + 10
    patience = COMPOSE["services"]["imagecall"]["stop_grace_period"]
    assert int(patience.rstrip("s")) > int(variables("compose")["IMAGECALL_SHUTDOWN_GRACE"]) + 10


def test_the_image_holds_what_is_built_from_and_runs_as_nobody_in_particular() -> None:
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for source in sources.split():
            assert (TOP / source).exists(), source
    [extras] = re.findall(r'"\.\[([\w,]+)\]"', DOCKERFILE)
    project = (TOP / "pyproject.toml").read_text()
    for extra in extras.split(","):
        assert f"\n{extra} = [" in project
    [user] = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    assert f"--uid {user} " in DOCKERFILE
    assert POD["securityContext"]["runAsUser"] == int(user)
    assert 'ENTRYPOINT ["imagecall"]\nCMD ["serve"]' in DOCKERFILE
    assert CONTAINER["args"] == ["serve"]


async def test_the_probes_are_answered() -> None:
    paths = {CONTAINER[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert paths == {"/healthz", "/readyz"}
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with raw_server(answering(answer)) as url:
        served, _ = upstream_app(url, {"backend": "scene", "store": "none"})
        async with lifespan(served):
            for path in paths:
                head, *_ = await ask(served, http_scope(path, method="GET"))
                assert head["status"] == 200


@pytest.mark.parametrize("alive", [True, False])
def test_the_images_own_health_check_tells_whether_the_process_answers(alive: bool) -> None:
    [code] = re.findall(r'CMD \["python", "-c", "(.+)"\]', DOCKERFILE)
    assert f":{PORT}/healthz" in code
    served, _ = upstream_app("http://127.0.0.1:1", {"backend": "scene", "store": "none"})
    with serve(served) as url:
        port = url.rpartition(":")[2] if alive else "1"
        command = [sys.executable, "-c", code.replace(str(PORT), port)]
        assert (subprocess.run(command, check=False, capture_output=True).returncode == 0) == alive


def test_selectors_and_names_in_kubernetes_find_each_other() -> None:
    labels = KUBERNETES["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert KUBERNETES["Service"]["spec"]["selector"] == labels
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert KUBERNETES[kind]["spec"]["selector"]["matchLabels"] == labels
    target = KUBERNETES["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", KUBERNETES["Deployment"]["metadata"]["name"])
    assert CONTAINER["envFrom"] == [{"configMapRef": {"name": KUBERNETES["ConfigMap"]["metadata"]["name"]}}]


def test_nginx_holds_no_event_back_and_repeats_no_request() -> None:
    told = (DEPLOY / "nginx.conf").read_text()
    for line in ("proxy_buffering off;", "proxy_next_upstream off;", "proxy_http_version 1.1;"):
        assert line in told
    assert f"client_max_body_size {load_settings({}).max_body >> 20}m;" in told
    assert f"proxy_read_timeout {load_settings({}).upstream_idle:g}s;" in told

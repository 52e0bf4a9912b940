"""Images have what their roles need, and containers are what nodes are."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.launch.extras import extras_of
from schemas.messages import Role

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "ops/launch/images"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ON_CPUS = (Role.BROWSER, Role.FEEDER, Role.JUDGE, Role.ARCHIVER)
ON_GPUS = (Role.POLICY, Role.TRAINER)


@pytest.mark.parametrize(("file", "roles"), [("cpu.Dockerfile", ON_CPUS), ("gpu.Dockerfile", ON_GPUS)])
def test_an_image_has_every_package_and_the_extras_of_its_roles(file: str, roles: tuple[Role, ...]) -> None:
    text = (IMAGES / file).read_text()
    packages = {name.rstrip("*") for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert {copied for copied, _ in re.findall(r"^COPY (\w+) (\w+)$", text, re.MULTILINE)} == packages
    (installed,) = re.findall(r"install\.sh ([a-z,-]+)", text)
    assert set(extras_of(roles, has_gpu=True)) <= set(installed.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    assert "USER 10001:10001" in text


def test_containers_are_the_nodes_of_the_page() -> None:
    services: dict[str, Any] = yaml.safe_load((IMAGES / "compose.yaml").read_text())["services"]
    page = (ROOT / "docs/kubernetes.md").read_text()
    (nodes,) = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "nodes:" in block)
    assert {service["command"][-1] for service in services.values()} == set(nodes["nodes"])
    for name, service in services.items():
        assert (service["read_only"], service["cap_drop"], service["image"]) == (True, ["ALL"], f"millrace:{name}")
        places = {volume.split(":")[1] for volume in service["volumes"]}
        assert {"/etc/millrace", "/var/lib/millrace"} <= places
    assert services["cpu"]["hostname"] in nodes["url"]

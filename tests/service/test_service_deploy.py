"""Units, manifests and the compose file: they parse, and what they start is taken as it is written."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from ipaddress import ip_address, ip_network
from pathlib import Path

import httpx
import pytest
import yaml

from aegis.cli.main import COMMANDS, run

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "aegis.yaml").read_text()))
COMPOSE = yaml.safe_load((ROOT / "examples" / "service" / "compose.yaml").read_text())
BIN = Path(sys.executable).parent


def unit(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the sections of a unit; a key may stand in it several times."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("["):
            sections[line.strip("[]")] = found = []
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.append((key, value))
    return sections


def started() -> list[tuple[str, str]]:
    """Return every line that a unit or a manifest starts, with where it is from."""
    lines = []
    for path in UNITS:
        about = unit(path).get("Service", ())
        lines += [(path.name, value) for key, value in about if key == "ExecStart"]
    for manifest in MANIFESTS:
        if manifest["kind"] == "Deployment":
            (container,) = manifest["spec"]["template"]["spec"]["containers"]
            lines += [(manifest["metadata"]["name"], container["args"][0])]
    return lines


@pytest.mark.parametrize(("name", "line"), started())
def test_what_is_started_is_a_command_with_options_that_it_has(name, line, capsys):
    """Each program is found in what is installed, and takes the options that it is given."""
    assert os.access(BIN / "aegis", os.X_OK)
    words = re.search(r"\baegis ((?:serve|worker|agent|catalog \w+)\b.*)", line.strip("'"))
    assert words, (name, line)
    verb = re.match(r"catalog \w+|\w+", words[1])[0]
    assert verb in COMMANDS
    assert run([*verb.split(), "--help"]) == 0
    told = capsys.readouterr().out.replace("/", " ")
    for option in re.findall(r"--[a-z-]+", words[1]):
        assert option in told, (name, option)


def test_units_hold_what_a_unit_needs():
    assert [path.name for path in UNITS] == [
        "aegis-agent.service",
        "aegis-backup.service",
        "aegis-backup.timer",
        "aegis-worker.service",
        "aegis.service",
    ]
    for path in UNITS:
        configparser.ConfigParser(strict=False, interpolation=None).read_string(path.read_text())
        about = dict(unit(path).get("Service", ()))
        if about:
            assert about["User"].startswith("aegis")
            assert about["UMask"] == "0077"
            assert about["ProtectSystem"] == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_no_fault_with_a_unit(path, tmp_path):
    """Of the program alone it says that it is not installed here; so the test puts another in its place."""
    for one in UNITS:
        text = one.read_text().replace("/opt/aegis/bin/aegis", "/bin/true")
        (tmp_path / one.name).write_text(text.replace("User=aegis-agent", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(tmp_path / path.name)],
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if path.name in line]
    assert (done.returncode, told) == (0, []), done.stderr


def test_manifests_fit_together():
    kinds = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in MANIFESTS]
    assert kinds == [
        ("Deployment", "aegis-service"),
        ("Deployment", "aegis-worker"),
        ("Service", "aegis"),
    ]
    service, worker, front = MANIFESTS
    for one in (service, worker):
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"] == labels
        (container,) = one["spec"]["template"]["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert one["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"]
    assert front["spec"]["selector"] == service["spec"]["template"]["metadata"]["labels"]
    (container,) = service["spec"]["template"]["spec"]["containers"]
    assert container["ports"][0]["containerPort"] == front["spec"]["ports"][0]["targetPort"]
    origin = re.search(r"--origin https://(\S+)", container["args"][0])[1]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        headers = {one["name"]: one["value"] for one in container[probe]["httpGet"]["httpHeaders"]}
        assert headers == {"Host": origin}
    assert container["livenessProbe"]["httpGet"]["path"] == "/api/v1/live"
    assert container["readinessProbe"]["httpGet"]["path"] == "/api/v1/health"


def test_the_proxy_that_the_compose_file_trusts_is_the_gateway_of_its_network():
    (network,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    (trusted,) = re.findall(r"--trust-proxy (\S+)", COMPOSE["services"]["service"]["command"][0])
    assert ip_address(trusted) == next(ip_network(network["subnet"]).hosts())


def listens(port: int) -> bool:
    """Whether somebody answers: a check by a process of its own takes the time of what starts."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def asked(check: list[str], environment: dict[str, str]) -> int:
    return subprocess.run(check, env=environment, capture_output=True, check=False).returncode


@pytest.mark.skipif(sys.platform != "linux", reason="a shell and PostgreSQL")
def test_the_service_of_the_compose_file_starts_as_it_is_written_and_is_healthy(tmp_path, postgres):
    """With PostgreSQL of this machine instead of the container, and a free port."""
    about = COMPOSE["services"]["service"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = about["command"][0].replace("$$", "$")
    written = re.search(r'--database "[^"]*"', line)[0]
    line = line.replace(written, f'--database "{postgres.new_database()}" --port {port}')
    line = line.replace("/objects", str(tmp_path / "objects"))
    environment = {
        **os.environ,
        **about["environment"],
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    process = subprocess.Popen(
        [*about["entrypoint"], line], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        check = about["healthcheck"]["test"][1:]
        check[-1] = check[-1].replace("8080", str(port))
        end = time.monotonic() + 300
        while not listens(port) or asked(check, environment):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        answer = httpx.get(
            f"http://127.0.0.1:{port}/api/v1/live", headers={"Host": "aegis.example.org"}
        )
        assert answer.headers["Strict-Transport-Security"]
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert '"path": "/api/v1/health", "status": 200' in said

"""What is handed out: the wheel, the source archive, the image, the action."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import aegis
from wheels import LABEL, TABLE, build, four_lines

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("built")
    build(folder)
    return folder


RUN_LINES = """
import json, sys
import aegis
from aegis.cli.main import run
for words in json.loads(sys.argv[1]):
    code = run(words)
    assert code == 0, (words, code)
print(aegis.__file__)
"""


def test_the_wheel_holds_all_that_is_needed_and_runs(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    shutil.copy(TABLE, tmp_path / "table.csv")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    lines = json.dumps(four_lines(LABEL))
    for words in (["-m", "aegis", "--version"], ["-c", RUN_LINES, lines]):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(str(tmp_path / "site"))
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_the_source_archive_makes_the_same_package(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "LICENSE", "src/aegis/__init__.py"} <= names
    (wheel,) = built.glob("*.whl")
    packed = {n for n in zipfile.ZipFile(wheel).namelist() if n.startswith("aegis/")}
    assert {f"src/{name}" for name in packed} <= names


@pytest.mark.parametrize("address", ["", "https://example.org/aegis"])
def test_the_page_of_the_package_links_to_files_of_its_version(
    address: str, tmp_path: Path
) -> None:
    """Without an address, it has no link to a file and no picture, because they do not work there."""
    project = (ROOT / "pyproject.toml").read_text()
    assert '\naddress = ""\n' in project
    kept = ["README.md", "LICENSE", "NOTICE", "hatch_build.py", "src/aegis/__init__.py"]
    for name in kept:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    written = project.replace('\naddress = ""\n', f'\naddress = "{address}"\n')
    (tmp_path / "pyproject.toml").write_text(written)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "built"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "built").glob("*.whl")
    packed = zipfile.ZipFile(wheel)
    (name,) = (name for name in packed.namelist() if name.endswith("/METADATA"))
    page = message_from_bytes(packed.read(name))
    text = page.get_payload(decode=True).decode()
    urls = dict(line.split(", ") for line in page.get_all("Project-URL", []))
    if not address:
        assert not urls
        assert not re.findall(r"!\[|\]\((?![a-z]+:)", text)
        readme = (ROOT / "README.md").read_text()
        linked = re.findall(r"(?<!!)\[([^\[\]]+)\]\((?![a-z]+:)", readme)
        code = re.findall(r"```.*?```", readme, re.DOTALL)
        assert len(linked) > 40
        assert len(code) > 9
        assert all(said in text for said in [*linked, *code])
        assert len(text.split()) > 0.9 * len(readme.split())
        return
    assert urls.keys() == {"Homepage", "Documentation", "Changelog", "Issues"}
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert len(targets) == len(re.findall(r"\]\(", (ROOT / "README.md").read_text())) > 40
    for target in [*targets, urls["Documentation"], urls["Changelog"]]:
        kind, version, path = target.removeprefix(f"{address}/").split("/", 2)
        assert version == f"v{aegis.__version__}"
        assert kind == ("raw" if path.endswith((".png", ".svg")) else "blob")
        assert (ROOT / path.partition("#")[0]).exists(), target


def test_the_version_is_one() -> None:
    assert PROJECT["version"] == aegis.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(aegis.__version__)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.M)


def test_pandas_is_no_dependency_of_the_core() -> None:
    names = {re.split(r"[\s<>=!~;\[]", one)[0] for one in PROJECT["dependencies"]}
    assert "pandas" not in names
    script = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import pyarrow as pa, aegis\n"
        "table = pa.table({'age': [i % 9 for i in range(90)], 'y': [i % 2 for i in range(90)]})\n"
        "policy = {'version': 1, 'label': 'y', 'privacy': {'k': 2},\n"
        "          'attributes': {'age': {'role': 'quasi-identifier'}}}\n"
        "study = aegis.Study(table, aegis.load_policy(policy))\n"
        "print(study.apply(study.advise()).audit.passed)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "True", done.stderr


def dockerfile() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_image_is_sound() -> None:
    steps = dockerfile()
    assert {name for name, _ in steps} <= {
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "ENTRYPOINT",
        "CMD",
    }
    for name, said in steps:
        if name == "FROM":
            assert re.match(r"[\w.-]+:[\w.-]+", said), f"{said} names no version"
        if name == "COPY" and "--from" not in said:
            for source in said.split()[:-1]:
                assert (ROOT / source).exists(), source
    last = [name for name, _ in steps]
    assert last.index("USER") < last.index("ENTRYPOINT")
    assert ("USER", "aegis") in steps
    allowed = (ROOT / ".dockerignore").read_text()
    assert all(f"!{name}" in allowed for name in ("src", "pyproject.toml", "constraints.txt"))


def builder() -> str | None:
    for name in ("docker", "podman"):
        if (
            shutil.which(name)
            and not subprocess.run([name, "info"], capture_output=True).returncode
        ):
            return name
    return None


def test_the_image_is_built_and_runs_where_there_is_a_builder() -> None:
    command = builder()
    if command is None:
        return  # linted above: no image can be built on a machine without a running builder
    subprocess.run([command, "build", "-t", "aegis-test", str(ROOT)], check=True)
    told = subprocess.run(
        [command, "run", "--rm", "aegis-test", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert aegis.__version__ in told.stdout


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


@pytest.mark.parametrize(("k", "code"), [("1", 0), ("50", 1)])
def test_the_action_audits_a_file(k: str, code: int, tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 4},{i % 2}" for i in range(40))
    (tmp_path / "t.csv").write_text(f"age,sex\n{rows}\n")
    (step,) = (step for step in action()["runs"]["steps"] if step.get("id") == "audit")
    inputs = dict.fromkeys(step["env"], "") | {"TABLE": "t.csv", "QUASI": "age,sex", "K": k}
    environment = {
        **os.environ,
        **inputs,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert (tmp_path / "output").read_text() == "k=10\n"


def test_the_actions_inputs_are_options_of_the_audit() -> None:
    from aegis.cli.main import app

    command: Any = typer.main.get_command(app)
    known = {name for one in command.commands["audit"].params for name in one.opts}
    inputs = set(action()["inputs"]) - {"table", "install"}
    assert {f"--{name}" for name in inputs} <= known


def test_the_command_is_declared() -> None:
    assert PROJECT["scripts"] == {"aegis": "aegis.cli.main:process"}
    assert importlib.metadata.version(PROJECT["name"])


def test_the_install_page_lists_all_extras() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text()
    listed = re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted(PROJECT["optional-dependencies"])


def test_the_demo_installs_the_core_alone(tmp_path: Path) -> None:
    """And tests install all: what each target would run, in a folder where nothing is made."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    # A make within a make says where it is, and hands on its flags.
    alone = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    ran = {
        target: subprocess.run(
            ["make", "-n", target],
            cwd=tmp_path,
            env=alone,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for target in ("demo", "test")
    }
    installed = re.findall(r"--editable (\S+)", ran["demo"])
    assert installed == ["."]
    assert "--group dev" not in ran["demo"]
    assert "The command is .venv/bin/aegis." in ran["demo"].splitlines()[-1]
    assert "--group dev" in ran["test"]
    assert "ml,dp,sign,service,excel,statistics" in ran["test"]

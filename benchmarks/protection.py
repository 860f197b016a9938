"""Protection: what noise costs beside a plain summary, the leak audit, the search after a release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.measure import ADULT, POLICY, Figure, command, timed
from benchmarks.tables import make_table

if TYPE_CHECKING:
    from benchmarks.tasks import Settings


def protection(settings: Settings) -> Iterator[Figure]:
    """Protect Adult and a large table, audit Adult's bundle, search after a release of it."""
    yield from _noise(settings, str(ADULT), "Adult")
    yield from _noise(
        settings, str(make_table(settings.folder, settings.rows)), f"{settings.rows:.0e} rows"
    )
    bundle = settings.folder / "adult.aegis"
    command("summarize", ADULT, "-p", POLICY, "-o", bundle, "--force", "--quiet")
    wall, cpu, _peak = command("leak", bundle, "--quiet")
    yield Figure(
        "protection",
        "leak audit of Adult's bundle, whole process",
        cpu,
        "s",
        60,
        note=f"{wall:.2f} s elapsed",
    )
    yield from _after()


def _noise(settings: Settings, table: str, name: str) -> Iterator[Figure]:
    """Compare processor times of whole processes, in turns."""
    plain, noised = [], []
    words = ("-p", POLICY, "--force", "--quiet")
    asked = ("--epsilon", 1, "--delta", 1e-6)
    for _ in range(2):
        output = settings.folder / "plain.aegis"
        plain.append(command("summarize", table, *words, "-o", output)[1])
        output = settings.folder / "noised.protected"
        noised.append(command("protect", table, *words, *asked, "-o", output)[1])
    yield Figure(
        "protection",
        f"protect / summarize, {name}",
        min(noised) / min(plain),
        "times",
        1.5,
        note=f"{min(noised):.1f} / {min(plain):.1f} s of processor",
    )


def _after() -> Iterator[Figure]:
    """Search Adult for the best beside an earlier release, to proof."""
    import aegis
    from aegis.advisor import generate
    from aegis.advisor.composition import summary_after

    policy = aegis.load_policy(POLICY)
    summary = aegis.summarize(ADULT, policy)
    earlier = aegis.Study(summary, policy).search(time_limit=120).require_best().configuration
    advice = None

    def search() -> None:
        nonlocal advice
        joint = summary_after(summary, policy, [earlier])
        advice = aegis.Study(joint, policy).search(time_limit=120)

    wall, cpu = timed(search)
    proven = advice is not None and advice.optimal
    yield Figure(
        "protection",
        "search of Adult after its best release, to proof",
        cpu,
        "s",
        60,
        note=f"{wall:.2f} s elapsed; {'proven' if proven else 'NOT proven'}",
        proven=proven,
    )
    random = generate(summary, 1, seed=7)
    wall, cpu = timed(lambda: summary_after(summary, policy, random))
    name = "joint classes with one release"
    yield Figure("protection", name, cpu, "s", note=f"{wall:.2f} s elapsed")

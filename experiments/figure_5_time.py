"""Figure 5a-c: end-to-end time to choose among 50 configurations.

AQ, IN and HCI, one run. For each way to choose, the time from the table to the choice, on the clock
and of the processor (which other work on the machine does not stretch):

- exhaustive: mask, train and test every configuration, by model; trained on `--trained` of the 50
  and multiplied up;
- published procedure: summarise, then per configuration IPF from uniform (at most 1,000 sweeps,
  tolerance 1e-6), randomised rounding and the three measures, every configuration afresh;
- SAMPLING and MASCARA likewise;
- Aegis: `advise` on the table, at the default measure.

    python experiments/figure_5_time.py [--data AQ,IN,HCI] [--trained 3] [--suffix _paper]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aegis
from aegis.advisor import Choice, Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation import Reconstructed
from aegis.papers.evaluation.coding import code_table
from aegis.papers.evaluation.comparators import mascara
from aegis.papers.evaluation.evaluate import run_task, tasks
from aegis.papers.evaluation.training import Model, choose_models, make_splits
from aegis.sources import open_table
from aegis.summary import summarize
from common import save_chart, write_csv, write_json
from paper_sets import PUBLISHED_MEASURES, Prepared, prepare

NAME = "figure_5_time"
MODELS = ("lr", "svm", "sgd", "nb", "gbdt", "mlp", "rf")
SLOW = {("IN", "rf"), ("HCI", "rf"), ("HCI-paper", "rf"), ("IN", "mlp")}
"""Minutes for each configuration on tens of thousands of columns or rows; left out."""
PUBLISHED = {
    "published procedure, histogram known": {"histogram": True},
    "published procedure, nothing known": {"histogram": False},
    "SAMPLING": {"histogram": False, "sampled": True},
}


@dataclass(frozen=True)
class Spent:
    """Seconds on the clock and of the processor."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu)

    def times(self, factor: float) -> Spent:
        """Return the multiple."""
        return Spent(self.wall * factor, self.cpu * factor)


def timed(work: Callable[[], Any]) -> tuple[Any, Spent]:
    """Return what the work returns, and what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, Spent(time.perf_counter() - wall, time.process_time() - cpu)


def ways(prepared: Prepared, count: int, trained: int) -> list[dict[str, Any]]:
    """Return one row per way to choose."""
    listed = prepared.configurations(count, seed=1)
    table, policy = prepared.table, prepared.policy
    rows = []

    def told(way: str, spent: Spent, measured: int = count) -> None:
        rows.append(
            {
                "way": way,
                "seconds": spent.wall,
                "processor_seconds": spent.cpu,
                "measured": measured,
            }
        )

    # The first call pays for what is loaded once in a process; the second is the measurement.
    for _ in range(2):
        _, spent = timed(lambda: aegis.advise(table, policy, configurations=listed))
    told("Aegis", spent)
    summary, summarising = timed(lambda: summarize(table, policy, seed=1))
    scorer = Scorer(summary)
    choices = {one.name: scorer.choose(one) for one in listed}
    measures = [MEASURES.get(name) for name in PUBLISHED_MEASURES]
    for way, options in PUBLISHED.items():

        def published(choice: Choice, options: dict[str, bool] = options) -> None:
            # A new estimator each time: the published procedure keeps nothing between them.
            Reconstructed(**options).deviation(scorer, choice, measures, seed=1)

        _, spent = timed(lambda published=published: [published(one) for one in choices.values()])
        told(way, summarising + spent)
    _, spent = timed(lambda: [mascara(scorer, one) for one in choices.values()])
    told("MASCARA", summarising + spent)
    coded, coding = timed(lambda: code_table(open_table(table), summary, policy, seed=1))
    splits = make_splits(coded.label, count=1, test_share=0.3, seed=1)
    some = dict(list(choices.items())[:: max(1, count // trained)][:trained])
    for model in choose_models([m for m in MODELS if (prepared.name, m) not in SLOW]):

        def train(model: Model = model) -> None:
            for task in tasks(coded, some, [model], splits, 1):
                run_task(task)

        _, spent = timed(train)
        told(f"exhaustive, {model.name.upper()}", coding + spent.times(count / trained), trained)
    return rows


def main(argv: list[str] | None = None) -> None:
    """Measure, and write figures and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,IN,HCI")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--trained", type=int, default=3)
    parser.add_argument("--suffix", default="", help="appended to the names of what is written")
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in given.data.split(","):
        load = os.getloadavg()[0]
        own = ways(prepare(name), given.count, given.trained)
        base = own[0]["processor_seconds"]
        for row in own:
            times = row["processor_seconds"] / base
            rows.append({"data": name, **row, "times_aegis": times, "load": load})
            print(rows[-1], flush=True)
    output = NAME + given.suffix
    write_csv(output, rows)
    write_json(output, {"count": given.count, "trained": given.trained, "ways": rows})
    draw(output, rows)


def draw(output: str, rows: list[dict[str, Any]]) -> None:
    """Draw the seconds of every way, on a logarithmic scale."""
    import altair

    least = min(row["processor_seconds"] for row in rows)
    values = [
        {
            "data": row["data"],
            "way": row["way"],
            "seconds": row["processor_seconds"],
            "from": least / 2,
            "kind": row["way"].split(",")[0],
            "text": f"{row['processor_seconds']:.3g} s, {row['times_aegis']:.3g} x",
        }
        for row in rows
    ]
    order = [row["way"] for row in rows if row["data"] == rows[0]["data"]]
    base = altair.Chart().encode(y=altair.Y("way:N", title=None, sort=order))
    scale = altair.Scale(
        type="log", domain=[least / 2, max(r["processor_seconds"] for r in rows) * 30]
    )
    bars = base.mark_bar().encode(
        x=altair.X(
            "from:Q",
            scale=scale,
            title="Processor seconds for 50 configurations (log)",
            axis=altair.Axis(values=[0.1, 1, 10, 100, 1000]),
        ),
        x2="seconds:Q",
        color=altair.Color("kind:N", legend=None),
    )
    texts = base.mark_text(align="left", dx=4, fontSize=10).encode(x="seconds:Q", text="text:N")
    chart = (
        altair.layer(bars, texts, data=altair.Data(values=values))
        .properties(width=230, height=220)
        .facet(column=altair.Column("data:N", title=None, sort=None))
    )
    save_chart(output, chart)


if __name__ == "__main__":
    main()

"""What optima of ARX's losses and record-level methods are worth beside ours, on public tables.

Eight or fewer quasi-identifiers a table, nothing else released, with the masks that `aegis init`
proposes; k = 5 with at most 2 % of the rows suppressed, and k = 10 with none. Searched by the default,
by the expected AUC and by the four losses of ARX; beside them three record-level methods at equal k, and
the unmasked table. Models are trained on the released rows of 70 % of the table and tested on all of the
other 30 %, masked alike: the same people for every release. AUC, three splits.

    AEGIS_RDATASETS=FOLDER AEGIS_FURTHER=FOLDER python experiments/optima_public.py --stores FOLDER [--data NAME,...]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis import init_policy, search
from aegis.advisor import Scorer
from aegis.advisor.methods import RecordRanker, choose_recipes
from aegis.errors import AegisError
from aegis.files import SILENT
from aegis.measures import MEASURES
from aegis.papers.evaluation.coding import CodedTable, Design, code_table
from aegis.papers.evaluation.evaluate import run_task
from aegis.papers.evaluation.releases import code_release
from aegis.papers.evaluation.training import MODELS, Rows, Split, Store, Task, make_splits
from aegis.policy import Policy, Role
from aegis.policy.suggest.masks import propose_masks
from aegis.privacy import PrivacyRule
from aegis.sources import Source, open_table
from aegis.summary import Summary, summarize
from arx_optima import released as rows_kept
from common import add_csv
from public_sets import CONFIRMATION, FURTHER, RESERVE
from selection_public import UNMASKED

NAME = "optima_public"
MOST_ROWS, SPLITS, TEST_SHARE, SEED, SECONDS = 3_000, 3, 0.3, 1, 30
LEARNERS = ("lr", "gbdt-60", "rf-50")  # the last two are registered by selection_public
QUASI = {
    "census": ("AAGE", "ASEX", "ARACE", "AMARITL", "AHGA", "ACLSWKR", "AMJOCC", "PRCITSHP"),
    "bank-calls": (
        "age",
        "job",
        "marital",
        "education",
        "default",
        "balance",
        "housing",
        "loan",
    ),
    "telco": (
        "female",
        "senior_citizen",
        "partner",
        "dependents",
        "tenure",
        "contract",
        "payment_method",
        "monthly_charges",
    ),
    "court": (
        "sex",
        "age",
        "race",
        "juv_fel_count",
        "juv_misd_count",
        "juv_other_count",
        "priors_count",
        "c_charge_degree",
    ),
    "credit": ("Age", "Marital", "Home", "Job", "Records", "Seniority", "Income", "Expenses"),
    "chile": ("region", "population", "sex", "age", "education", "income"),
    "crashes": (
        "sex",
        "ageOFocc",
        "yearacc",
        "yearVeh",
        "dvcat",
        "seatbelt",
        "airbag",
        "frontal",
    ),
    "attrition": (
        "Age",
        "Gender",
        "MaritalStatus",
        "Education",
        "EducationField",
        "JobRole",
        "MonthlyIncome",
        "DistanceFromHome",
    ),
    "stroke": (
        "gender",
        "age",
        "hypertension",
        "heart_disease",
        "urban_residence",
        "avg_glucose_level",
        "bmi",
        "smokes",
    ),
    "insurance": (
        "age",
        "gender",
        "ethnicity",
        "married",
        "family",
        "region",
        "education",
        "selfemp",
    ),
    "churn": (
        *("state", "account_length", "area_code", "international_plan", "voice_mail_plan"),
        *("number_vmail_messages", "total_intl_calls", "number_customer_service_calls"),
    ),
    "mortgage": (*("selfemp", "condomin", "afam", "single", "hschool", "chist", "lvrat", "unemp"),),
    "remote": (
        *("Country", "Salary", "YearsCodedJob", "OpenSource", "Hobby", "CompanySizeNumber"),
        *("CareerSatisfaction", "Web_developer"),
    ),
}
"""Sets in the order in which they are run, and what is a quasi-identifier in them."""
RULES = {"k = 5, 2 %": (5, 0.02), "k = 10, 0 %": (10, 0.0)}
OBJECTIVES = {
    "trace": None,
    "expected AUC": "held-out-auc",
    "loss": "loss",
    "NU entropy": "nu-entropy",
    "discernibility": "discernibility",
    "classification": "classification",
}
METHODS = ("mondrian", "mdav", "k-member")


def problem(name: str) -> tuple[Source, Policy]:
    """Return a table of the quasi-identifiers and the label, and the policy that `init` proposes."""
    chosen = {**CONFIRMATION, **RESERVE, **FURTHER}[name]
    table = chosen.open(MOST_ROWS).select([*QUASI[name], chosen.label])
    proposed = init_policy(table, label=chosen.label)
    attributes = {
        column: replace(
            proposed.policy.attributes[column],
            role=Role.QUASI_IDENTIFIER,
            masks=propose_masks(proposed.profiles[column].facts, Role.QUASI_IDENTIFIER).masks,
        )
        for column in QUASI[name]
    }
    rule = rule_of(*RULES["k = 5, 2 %"])
    return open_table(table), replace(proposed.policy, attributes=attributes, privacy=rule)


def rule_of(k: int, suppression: float) -> PrivacyRule:
    """Return k-anonymity with a limit of suppression."""
    return PrivacyRule.parse({"k": k, "suppression": suppression})


def of_masks(
    source: Source, policy: Policy, summary: Summary, rows: CodedTable
) -> Iterator[tuple[str, Design, Rows, dict[str, Any]]]:
    """Yield name, design, released rows and facts of the optimum of every objective."""
    scorer = Scorer(summary)
    for title, objective in OBJECTIVES.items():
        advice = search(
            source, policy, objective=objective, top=1, explain_best=False, time_limit=SECONDS
        )
        best = advice.require_best().configuration
        choice = scorer.choose(best)
        kept = rows_kept(rows, choice, policy)
        facts = {
            "masks": ", ".join(f"{name} {mask}" for name, mask in best.masks.items()),
            "proven": advice.optimal,
            "suppressed_rows": int((~kept).sum()),
        }
        yield title, rows.design(choice), kept.nonzero()[0], facts


def of_records(
    source: Source, policy: Policy, summary: Summary, rows: CodedTable
) -> Iterator[tuple[str, Design, Rows, dict[str, Any]]]:
    """Yield name, design, released rows and facts of every record-level release."""
    ranker = RecordRanker(summary, source, policy, MEASURES.get("held-out-pillai"), SEED, SILENT)
    for recipe in choose_recipes(policy, METHODS, seed=SEED):
        made = ranker.make(recipe)
        coded = code_release(ranker.read, made, ranker.rank(made), rows, tuple(summary.attributes))
        facts = {"masks": "", "proven": None, "suppressed_rows": rows.rows - len(coded.rows)}
        yield recipe.name, coded.design, coded.rows, facts


def trained(
    title: str,
    design: Design,
    released: Rows,
    rows: CodedTable,
    splits: tuple[Split, ...],
    store: Store,
) -> Iterator[dict[str, Any]]:
    """Yield one row per model and split; train what is not stored."""
    for model in LEARNERS:
        for split in splits:
            train = split.train[np.isin(split.train, released)]
            task = Task(
                title,
                design,
                rows.label,
                len(rows.classes),
                MODELS.get(model),
                split.number,
                train,
                split.test,
                SEED + split.number,
            )
            training = store.get(task)
            if training is None:
                key, training = run_task(task)
                store.add(key, training)
            yield {"model": model, "split": split.number, "auc": training.metrics["roc_auc"]}


def run(name: str, store: Store) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the figures of one table: by release, model and split, and facts by release."""
    source, policy = problem(name)
    summary = summarize(source, policy)
    rows = code_table(source, summary, policy, seed=SEED)
    splits = make_splits(rows.label, count=SPLITS, test_share=TEST_SHARE, seed=SEED)
    whole = rows.design(Scorer(summary).unmasked)
    figures: list[dict[str, Any]] = []
    facts: list[dict[str, Any]] = []

    def add(
        rule: str, title: str, design: Design, released: Rows, known: Mapping[str, Any]
    ) -> None:
        head = {"data": name, "rule": rule, "release": title}
        facts.append({**head, "rows": rows.rows, **known})
        figures.extend(
            {**head, **row} for row in trained(title, design, released, rows, splits, store)
        )
        print(name, rule, title, known, flush=True)

    everything = {"masks": "", "proven": None, "suppressed_rows": 0}
    add("none", UNMASKED, whole, rows.labelled, everything)
    for rule, given in RULES.items():
        own = replace(policy, privacy=rule_of(*given))
        for releases in (of_masks, of_records):
            try:
                for title, design, released, known in releases(source, own, summary, rows):
                    add(rule, title, design, released, known)
            except AegisError as error:
                print(name, rule, releases.__name__, error, flush=True)
    return figures, facts


def main(argv: list[str] | None = None) -> None:
    """Run table after table, and write the figures after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(QUASI))
    parser.add_argument("--stores", type=Path, required=True, help="folder of finished trainings")
    given = parser.parse_args(argv)
    for name in given.data.split(","):
        store = Store(given.stores / f"optima_{name}.jsonl")
        figures, facts = run(name, store)
        store.close()
        add_csv(NAME, figures)
        add_csv(f"{NAME}_releases", facts)


if __name__ == "__main__":
    main()

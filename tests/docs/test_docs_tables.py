"""The tables of the docs that experiments fill are those of the result files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiment_modules import experiment

ROOT = Path(__file__).parents[2]
TABLES = [
    ("mo_obam_members_tables", "anonymizers", "bound_table", (), 8),
    ("mo_obam_tables", "anonymizers", "risk_table", (), 26),
    ("mo_obam_tables", "anonymizers", "peer_table", (), 18),
    ("mo_obam_tables", "anonymizers", "model_table", (), 12),
    ("selection_tables", "experiments", "mean_table", (), 8),
    ("selection_tables", "experiments", "penalty_table", (), 17),
    ("paper_tables", "paper", "accuracy_table", (), 6),
    ("paper_tables", "paper", "anonymous_table", (), 2),
    ("paper_tables", "paper", "anonymous_table", ("_forest_paper",), 2),
    ("paper_tables", "paper", "chosen_table", (), 16),
    ("paper_tables", "paper", "forest_table", (), 2),
    ("paper_tables", "paper", "network_table", (), 3),
    ("paper_tables", "paper", "network_table", ("_paper",), 1),
    ("paper_tables", "paper", "network_table", ("_hci_paper",), 1),
    ("numbers_tables", "experiments", "stated_table", (), 22),
    ("numbers_tables", "experiments", "rank_table", (), 19),
    ("numbers_tables", "experiments", "lost_table", (), 19),
    ("numbers_tables", "experiments", "codings_table", (), 11),
    ("numbers_tables", "experiments", "new_table", (), 11),
    ("protected_tables", "experiments", "rank_table", (), 10),
    ("public_tables", "experiments", "again_table", (), 8),
    ("public_tables", "experiments", "chooser_table", ("lr gbdt-60 rf-50",), 13),
    ("public_tables", "experiments", "kind_table", ("rare",), 10),
    ("public_tables", "experiments", "kind_table", ("classes",), 3),
    ("public_tables", "experiments", "kind_table", ("tiny",), 7),
    ("public_tables", "experiments", "kind_table", ("keys",), 3),
    ("public_tables", "experiments", "ahead_table", (), 16),
    ("arx_tables", "arx-cases", "summary_table", (), 27),
    ("arx_tables", "arx-cases", "missing_table", (), 4),
]
"""Script, page, table, its arguments, its rows."""
PRINTED = [
    *(
        ("selection_tables", "selection_table", (name,), 14)
        for name in ("AQ", "IN", "German", "HCI")
    ),
    ("selection_tables", "coding_table", (), 13),
    ("numbers_tables", "misplaced", (), 18),
    ("protected_tables", "rule_table", (), 15),
    ("public_tables", "rare_table", (), 6),
    ("public_tables", "confirmation_table", (), 21),
    ("public_tables", "chooser_table", ("lr",), 13),
    ("public_tables", "model_table", (), 20),
    ("public_tables", "optima_table", ("k = 5, 2 %",), 13),
    ("public_tables", "optima_table", ("k = 10, 0 %",), 13),
    ("arx_tables", "case_table", (), 550),
    ("mo_obam_f1_tables", "f1_table", (), 26),
    ("mo_obam_f1_tables", "four_clusters_table", (), 8),
    ("mo_obam_f1_tables", "grid_table", (), 4),
    ("mo_obam_members_tables", "reading_table", ("5", "years"), 7),
    ("mo_obam_members_tables", "reading_table", ("10",), 9),
    ("mo_obam_members_tables", "adult_table", ("5",), 18),
    ("mo_obam_members_tables", "adult_table", ("10",), 18),
    ("mo_obam_members_tables", "truncated_table", (), 8),
    ("paper_tables", "choosing_table", (), 12),
    ("paper_tables", "anonymous_table", ("_paper",), 8),
    ("paper_tables", "change_table", (), 15),
    ("paper_tables", "chosen_table", ("_paper",), 11),
    ("paper_tables", "distance_table", (), 25),
    ("paper_tables", "ranking_table", (), 15),
    ("paper_tables", "histogram_table", (), 16),
    ("paper_tables", "histogram_table", ("_paper",), 11),
    ("paper_tables", "time_table", (), 5),
]
"""Tables that scripts print and no page shows."""


def made_by(script: str, table: str) -> Callable[..., list[str]]:
    """Return the function of a script in `experiments/` that makes a table."""
    function: Callable[..., list[str]] = getattr(experiment(script), table)
    return function


@pytest.mark.parametrize(("script", "page", "table", "given", "rows"), TABLES)
def test_table_stands_in_the_docs(
    script: str, page: str, table: str, given: tuple[str, ...], rows: int
) -> None:
    made = made_by(script, table)(*given)
    assert len(made) == rows
    written = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").splitlines()
    missing = [line for line in made if line not in written]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(("script", "table", "given", "rows"), PRINTED)
def test_a_script_prints_its_table(
    script: str, table: str, given: tuple[str, ...], rows: int
) -> None:
    made = made_by(script, table)(*given)
    assert len(made) == rows
    assert all(line.startswith("|") and line.endswith("|") for line in made)


def test_level_counts_left_no_cell_that_follows() -> None:
    left = made_by("protected_tables", "derivable_cells")()
    assert "adult" in left
    assert not any(left.values())

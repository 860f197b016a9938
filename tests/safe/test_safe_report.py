"""The section of the report that says what the summary behind it gives away."""

from __future__ import annotations

import pyarrow as pa

import aegis


def test_a_study_reports_what_its_summary_gives_away():
    table = pa.table({"age": [1, 2, 3, 4] * 9, "label": ["a", "b"] * 18})
    policy = {
        "version": 1,
        "label": "label",
        "privacy": {"k": 2},
        "attributes": {"age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }
    page = aegis.Study(table, aegis.load_policy(policy)).report()
    title = "Only if you pass on a summary file (.aegis)"
    assert f"<summary>{title}</summary>" in page
    assert f'<h2 id="leak-title">{title}</h2>' in page
    assert '<th scope="row">frequency table</th>' in page

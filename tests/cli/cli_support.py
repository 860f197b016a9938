"""Helpers of the command line's tests."""

from __future__ import annotations


def plain(text: str) -> str:
    """Return text with each run of white space as one blank."""
    return " ".join(text.split())


ROWS_OF_COMMANDS = [
    ("advise", "table.csv", "-p", "policy.yaml", "-o", "b.yaml"),
    ("advise", "table.csv", "-p", "policy.yaml", "--search", "--front", "k=2..6"),
    (
        "apply",
        "table.csv",
        "-p",
        "policy.yaml",
        "-c",
        "best.yaml",
        "-o",
        "m.csv",
        "--certificate",
        "c.json",
    ),
    (
        "anonymize",
        "table.csv",
        "-p",
        "policy.yaml",
        "-m",
        "mo-obam",
        "--option",
        "clusters=6",
        "--option",
        "starts=1",
        "--front",
        "-o",
        "r.csv",
        "--certificate",
        "rc.json",
    ),
    ("advise", "table.csv", "-p", "policy.yaml", "--with", "mondrian,mdav"),
    ("anonymizers",),
    ("anonymizers", "hybrid"),
    ("audit", "table.csv", "-p", "policy.yaml"),
    (
        "audit",
        "table.csv",
        "--quasi-identifiers",
        "age,sex",
        "--sensitive",
        "diagnosis,income,price,zip",
    ),
    ("summarize", "table.csv", "-p", "policy.yaml", "-o", "s.aegis"),
    ("masks",),
    ("masks", "bucketize"),
    ("measures",),
    ("measures", "adjusted-pillai"),
    ("privacy-models",),
    ("privacy-models", "l_diversity.recursive"),
    ("--help",),
]
"""Commands whose output is for people."""

"""Rank tables as the papers' publisher does, from masked tables or their counts, and raw
histograms.
"""

from aegis.papers.published.build import publish
from aegis.papers.published.contingencies import read_contingencies
from aegis.papers.published.file import load_published, save_published
from aegis.papers.published.histograms import (
    histograms_of,
    read_histograms,
    read_mapping_of,
    write_histograms,
)
from aegis.papers.published.model import Published
from aegis.papers.published.rank import rank_published

__all__ = [
    "Published",
    "histograms_of",
    "load_published",
    "publish",
    "rank_published",
    "read_contingencies",
    "read_histograms",
    "read_mapping_of",
    "save_published",
    "write_histograms",
]

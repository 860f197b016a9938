"""Support the papers' publishers, who have masked tables or their counts, and raw histograms."""

from aegis.papers.published.build import publish
from aegis.papers.published.model import (
    Published,
    histograms_of,
    load_published,
    read_contingencies,
    read_histograms,
    read_mapping_of,
    save_published,
    write_histograms,
)
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

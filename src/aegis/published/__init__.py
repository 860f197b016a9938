"""What the papers' publisher holds: masked tables, or their counts, and histograms of the raw one."""

from aegis.published.build import publish
from aegis.published.contingencies import read_contingencies
from aegis.published.file import load_published, save_published
from aegis.published.histograms import (
    histograms_of,
    read_histograms,
    read_mapping_of,
    write_histograms,
)
from aegis.published.model import Published
from aegis.published.rank import rank_published

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

"""What the papers' publisher holds: masked tables under opaque names, and histograms of the raw one."""

from aegis.published.build import publish
from aegis.published.file import load_published, save_published
from aegis.published.histograms import histograms_of, read_histograms, read_mapping_of
from aegis.published.model import Published
from aegis.published.rank import rank_published

__all__ = [
    "Published",
    "histograms_of",
    "load_published",
    "publish",
    "rank_published",
    "read_histograms",
    "read_mapping_of",
    "save_published",
]

"""Summarise a table once, and answer all questions about it: the main Python interface, `Study`."""

from aegis.study.calls import advise, evaluate, search
from aegis.study.study import Study
from aegis.study.subject import ask

__all__ = ["Study", "advise", "ask", "evaluate", "search"]

"""Summarise a table once, and answer all questions about it: the main Python interface, `Study`."""

from aegis.study.advising import SEARCH_SECONDS
from aegis.study.questions import ask
from aegis.study.shortcuts import advise, evaluate, search
from aegis.study.study import Study

__all__ = ["SEARCH_SECONDS", "Study", "advise", "ask", "evaluate", "search"]

"""Summarise a table once, and answer all questions about it: the main Python interface, `Study`."""

from aegis.study.questions import ask
from aegis.study.shortcuts import advise, evaluate, search
from aegis.study.study import Study

__all__ = ["Study", "advise", "ask", "evaluate", "search"]

"""Check on the table whether a configuration meets the rule, alone and with earlier releases.

The agent makes this check next to the data. Its answer has the form of a certificate: a
configuration and verdicts on it. It contains the size of the smallest class, and of no other class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aegis.advisor import Scorer, measure_for
from aegis.advisor.composition import certified_rows, compose
from aegis.advisor.plan import rank_choice
from aegis.errors import NoAdmissibleConfiguration
from aegis.files import SILENT, Progress
from aegis.policy import Configuration, Policy
from aegis.policy.load import write_mapping
from aegis.service.catalog.flow import configuration_of
from aegis.service.catalog.summaries import written
from aegis.study import Study

SECONDS = 60.0
"""Largest number of seconds of a search on the data, if no candidate meets the rule."""


def check(
    table: Any,
    policy: Policy,
    listed: Sequence[str],
    certificates: Sequence[Mapping[str, Any]],
    *,
    measure: str | None = None,
    may_search: bool,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Return the first configuration that meets the rule both alone and together with earlier
    releases.

    Parameters
    ----------
    listed
        Configurations as YAML, best first.
    certificates
        Certificates of earlier releases of this table, or their masks, suppressed rows and rules in
        the form of a certificate.
    measure
        The measure of utility in the answer; by default the policy's measure.
    may_search
        Whether to search all combinations of masks if no listed configuration meets the rule.

    Raises
    ------
    NoAdmissibleConfiguration
        No configuration meets the rule.
    PolicyError
        An earlier release was made under a weaker rule, or from another table.
    """
    study = Study(table, policy, progress=progress)
    earlier = [_of_certificate(document, policy) for document in certificates]
    configurations = [configuration_of(text, policy) for text in listed]
    with progress.step("The agent checks configurations on the table", len(configurations)) as step:
        for index, configuration in enumerate(configurations):
            answer = _answer(study, configuration, earlier, measure)
            if answer["holds"] or not may_search:
                return answer | {"place": index + 1, "searched": False}
            step.advance()
    return _searched(study, earlier, measure)


def _searched(
    study: Study, earlier: Sequence[Configuration], measure: str | None
) -> dict[str, Any]:
    advice = study.search(measure=measure, top=50, time_limit=SECONDS, methods=())
    for index, ranked in enumerate(advice.ranking):
        if not ranked.admissible:
            break
        answer = _answer(study, ranked.configuration, earlier, measure)
        if answer["holds"]:
            proven = advice.optimal and index == 0
            return answer | {"place": index + 1, "searched": True, "proven": proven}
    advice.require_best()
    raise NoAdmissibleConfiguration(
        "No configuration meets the rule together with the earlier releases.",
        hint="Allow coarser masks.",
    )


def _answer(
    study: Study,
    configuration: Configuration,
    earlier: Sequence[Configuration],
    measure: str | None,
) -> dict[str, Any]:
    chosen, _ = measure_for(study.summary, measure, study.policy.measure)
    scorer = Scorer(study.summary)
    ranked = rank_choice(
        configuration.name, scorer.choose(configuration), scorer, study.plan, chosen
    )
    utility_kept = (
        None if ranked.utility_kept is None else min(100.0, round(ranked.utility_kept, 1))
    )
    answer = {
        "configuration": written(ranked.configuration),
        "masks": dict(ranked.declared),
        "measure": chosen.name,
        "utility_kept": utility_kept,
        "smallest_class": ranked.smallest_class,
        "suppressed_rows": ranked.suppressed_rows,
        "rows": study.summary.rows,
        "violations": list(ranked.violations),
        "holds": ranked.admissible,
    }
    if not earlier or not ranked.admissible:
        return answer
    return answer | _together(study, configuration, earlier)


def _together(
    study: Study, configuration: Configuration, earlier: Sequence[Configuration]
) -> dict[str, Any]:
    """Return, as JSON values, whether the rule holds if somebody links a release of this
    configuration with releases of the `earlier` ones.
    """
    composition = compose(
        study.summary,
        (*earlier, configuration),
        study.policy.privacy,
        study.policy.protected_hierarchies,
        released_only=True,
    )
    return {
        "holds": composition.holds,
        "joint_smallest_class": composition.verdict.smallest_before,
        "joint_rows_below": composition.verdict.suppressed_rows,
        "joint_attributes": list(composition.breaking),
        "violations": list(composition.verdict.violations),
    }


def _of_certificate(document: Mapping[str, Any], policy: Policy) -> Configuration:
    masks = dict(document["configuration"]["masks"])
    chosen = configuration_of(write_mapping({"configurations": {"earlier": masks}}), policy)
    return replace(chosen, certified=certified_rows(document))

"""`aegis advise`: find the masks that keep the most predictive value under a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.cli.advice import print_advice, print_short
from aegis.cli.files import (
    REPORT,
    YAML,
    Opening,
    check_outputs,
    is_bundle,
    next_step,
    opens_table,
    unused,
    written,
)
from aegis.cli.output import PrintOptions, reporting, shown_location
from aegis.cli.parameters import (
    After,
    Configurations,
    ExactPairs,
    Force,
    Format,
    Generate,
    LeaveOut,
    MeasureOptions,
    NoValues,
    PolicyFile,
    Population,
    RuleOverride,
    Seed,
    TableOrBundle,
    VerifyKey,
    With,
    refuse,
    split_names,
)
from aegis.errors import PolicyError
from aegis.files import TABLE_FORMATS, format_of, write_text
from aegis.options import option
from aegis.registry import format_of_summary
from aegis.requests import SEARCH_WORK, SearchRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice, Ranked
    from aegis.files import Progress
    from aegis.policy import Configuration, Policy
    from aegis.sources import Source
    from aegis.study import Study
    from aegis.summary import Summary

TOP = 10
"""Number of configurations that are listed by default."""
EXAMPLES = (
    "aegis advise table.csv -p policy.yaml -o best.yaml --report report.html",
    "aegis advise table.csv -p policy.yaml --explain",
    "aegis advise table.csv -p policy.yaml --time-limit 300 --resume search.json",
    "aegis advise table.aegis -p policy.yaml --measure cmim --format json",
    "aegis advise table.csv -p policy.yaml --metric accuracy --models lr,gbdt",
    "aegis advise table.csv -p policy.yaml --front k=2..20",
    "aegis advise table.csv -p policy.yaml --generate 200 --seed 1",
    "aegis advise table.csv -p policy.yaml --with mondrian,mdav -o best.yaml",
    "aegis advise table.aegis -p policy.yaml --estimate aegis+1d --measure mi",
)
FIRST = (
    "policy_file",
    "output",
    "report",
    "explain",
    "top",
    "time_limit",
    "measure",
    "leave_out",
    "front",
    "force",
)
"""The options that the help explains first, by the names of their parameters."""


@dataclass(frozen=True, kw_only=True)
class CandidateOptions:
    """Options that choose which releases to compare."""

    configurations: Configurations = None
    generate: Generate = None
    search: bool = option(
        False,
        "Search all combinations of the candidate masks. This is the default, unless the "
        "policy lists configurations.",
    )
    estimate: str | None = option(
        None,
        "Rank by the estimated deviation from the raw table, the smallest first (Algorithm 1 "
        "of the AEGIS paper): aegis+1d, aegis-1d, sampling, all-evidence, or raw (the true "
        "deviation). It ranks the configurations that you name or generate (50 by default).",
        "CASE",
    )
    methods: With = None
    proxy: bool = option(
        False,
        "Also train a small model (the first of --models, else lr) on 2,000 rows of each of "
        "the five best releases, and show its results. The ranking stays the same. Needs a "
        "table, not a summary.",
    )

    @property
    def ranking(self) -> dict[str, object]:
        """The options of a ranking, by name."""
        return {"--configurations": self.configurations, "--generate": self.generate}


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options for the counts of the table."""

    after: After = None
    leave_out: LeaveOut = None
    population: Population = None
    exact: ExactPairs = False
    rule_override: RuleOverride = False
    verify_key: VerifyKey = None

    @property
    def dropped(self) -> list[str] | None:
        """The attributes to leave out."""
        return split_names(self.leave_out)


@dataclass(frozen=True, kw_only=True)
class PageOptions(PrintOptions):
    """Options for the printed output and for the files to write."""

    no_values: NoValues = False
    top: int | None = option(
        None,
        "How many configurations to list (default 10; 0 for all). A search lists them only "
        "with this option or --explain.",
        "N",
        least=0,
    )
    explain: bool = option(
        False,
        "Also print the ranking, the cost of each mask, what is proven, why no mask is "
        "finer, what a weaker rule would gain, and every warning in full.",
    )
    output: Path | None = option(
        None,
        "Write the best to this file (YAML): a configuration for aegis apply, or a recipe "
        "for aegis anonymize.",
        "FILE",
        short="-o",
    )
    report: Path | None = option(
        None, "Write a report (.html, or .pdf with an installed Chromium).", "FILE"
    )
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class AdviseCommand:
    """All options of `aegis advise`."""

    table: TableOrBundle
    policy_file: PolicyFile
    releases: CandidateOptions
    measured: MeasureOptions
    searched: SearchRequest
    counted: TableOptions
    pages: PageOptions
    opening: Opening
    seed: Seed = 0

    @property
    def searching(self) -> dict[str, object]:
        """The options that only a search accepts, by name."""
        search = self.searched
        return {
            "--objective": search.objective,
            "--time-limit": search.time_limit,
            "--resume": search.resume,
            "--front": search.front,
        }

    def searches(self, policy: Policy) -> bool:
        """Return whether all combinations are searched, because none are listed."""
        releases = self.releases
        if releases.search or any(value is not None for value in self.searching.values()):
            return True
        listed = releases.configurations or policy.configurations
        return not (listed or releases.generate or releases.estimate)

    @property
    def short(self) -> bool:
        """Whether the result of a search is printed on one screen."""
        pages = self.pages
        listing = pages.explain or pages.top is not None or self.searched.front is not None
        return pages.format is Format.TABLE and not listing and not self.releases.methods


@opens_table
def command(options: AdviseCommand) -> None:
    """Find the masks that keep the most predictive value under the privacy rule.

    You give a table or its summary, and a policy. Aegis searches the combinations of
    the candidate masks. It prints the best one on one screen, and says whether it is
    proven to be the best of all. --explain also prints the runners-up, each with its
    score, the predictive utility deviation (PUD), the smallest class and the suppressed
    rows. If you name configurations (in the policy, in a file, or by --generate), Aegis
    ranks these instead of searching. If you name record-level methods (--with), Aegis
    also ranks their releases, by the same measure and rule.

    If no configuration meets the privacy rule, Aegis names the closest one and the exit
    code is 1."""
    from aegis.policy import load_configurations, load_policy

    releases, pages, counted = options.releases, options.pages, options.counted
    check_outputs(
        [(pages.output, YAML), (pages.report, REPORT)],
        force=pages.force,
        inputs=(options.table, options.policy_file, releases.configurations),
    )
    measure = options.measured.name
    _check_kind(options)
    policy = load_policy(options.policy_file).without(counted.dropped or ())
    policy = policy.drawn_from(counted.population)
    listed = None
    if releases.configurations is not None:
        listed = load_configurations(releases.configurations, policy)
    subject = options.opening.study_subject(
        options.table, policy, options, quiet=pages.quiet, verify_key=counted.verify_key
    )
    with reporting(quiet=pages.quiet) as progress:
        study = _study(options, subject, policy, progress)
        advice = _advice(options, study, listed, measure)
        if releases.proxy:
            advice = study.proxy(advice, [options.measured.first_model])
        if pages.report is not None:
            study.report(advice, pages.report, values=not pages.no_values, force=pages.force)
    _print(options, advice, policy, short=options.short and advice.search is not None)


def _study(
    options: AdviseCommand, subject: str | Source | Summary, policy: Policy, progress: Progress
) -> Study:
    """Return the study of the table, together with earlier releases if the user names any."""
    from aegis.study import Study

    counted = options.counted
    if counted.after:
        from aegis.advisor.composition import read_release, summary_after

        earlier = [read_release(path, policy) for path in counted.after]
        subject = summary_after(
            subject, policy, earlier, exact=counted.exact, seed=options.seed, progress=progress
        )
    study = Study(
        subject,
        policy,
        exact=counted.exact,
        seed=options.seed,
        progress=progress,
        rule_override=counted.rule_override,
    )
    if options.releases.proxy and study.source is None:
        raise PolicyError(
            "--proxy trains models on rows, and a summary holds none.", hint="Give the table."
        )
    return study


def _advice(
    options: AdviseCommand,
    study: Study,
    listed: Mapping[str, Configuration] | None,
    measure: str | None,
) -> Advice:
    """Run the search, or the ranking of the configurations `listed`, and return its advice."""
    releases, request = options.releases, options.searched
    methods = split_names(releases.methods)
    if not (study.searchable and options.searches(study.policy)):
        return study.rank(
            listed,
            generate_count=releases.generate,
            measure=measure,
            estimate=releases.estimate,
            methods=methods,
            prefer=request.prefer,
        )
    request = replace(
        request,
        measure=measure,
        top=options.pages.top or TOP,
        work=SEARCH_WORK,
        prove=request.time_limit is not None,
        explain_best=not options.short or options.pages.report is not None,
    )
    return study.search(request, methods=methods)


def _print(options: AdviseCommand, advice: Advice, policy: Policy, *, short: bool) -> None:
    """Print the advice, write the best configuration, and suggest the next step."""
    pages, shell, table = options.pages, options.pages.shell, shown_location(options.table)
    best = advice.best
    output = pages.output if best is not None else None
    if output is not None and best is not None:
        write_text(output, _written(best, advice))
    if short and best is not None:
        print_short(shell, advice, best, table, policy)
    else:
        print_advice(shell, advice, table, policy, TOP if pages.top is None else pages.top or None)
    shell.say(*written([output, pages.report]))
    if best is None:
        advice.require_best()
    shell.suggest(*_next(options, table, output, advice))


def _deciding(options: AdviseCommand) -> dict[str, Any]:
    """Return those options, by name, that affect which release is the best."""
    releases, search, counted = options.releases, options.searched, options.counted
    return {
        "configurations": releases.configurations,
        "generate": releases.generate,
        "search": releases.search,
        "measure": options.measured.name,
        "estimate": releases.estimate,
        "objective": search.objective,
        "time_limit": search.time_limit,
        "resume": search.resume,
        "front": search.front,
        "prefer": search.prefer,
        "with": split_names(releases.methods),
        "after": counted.after,
        "rule_override": counted.rule_override,
        "exact": counted.exact,
        "seed": options.seed or None,
    }


def _check_kind(options: AdviseCommand) -> None:
    """Refuse options for a ranking together with options for a search."""
    ranking, searching = options.releases.ranking, options.searching
    if options.pages.report is None:
        unused = {"--no-values": options.pages.no_values or None}
        refuse(
            unused, "is for a report, and you asked for none", "Add --report FILE, or leave it out."
        )
    estimate = options.releases.estimate
    if estimate is not None:
        prefer = {"--prefer": options.searched.prefer}
        refuse(prefer, "is of scores, not of estimates", "Leave it out.")
    if options.releases.search:
        refuse(
            ranking,
            "is not for a search, which tries all combinations",
            "Leave out {} or --search.",
        )
    if any(value is not None for value in ranking.values()):
        refuse(searching, "is for a search, which tries all combinations", "Leave it out.")
    if estimate is not None:
        refuse(
            searching,
            "is for a search, and estimates are of a ranking",
            "Leave out {} or --estimate.",
        )


def _written(best: Ranked, advice: Advice) -> str:
    """Return the text of the file for the best configuration or recipe.

    It names the measure of the ranking, unless it is the default, so that the certificate of the
    release states the same measure. If the best entry was chosen from a summary, it also has the
    rule of the summary.
    """
    named = advice.stated_measure
    if best.method is None:
        from aegis.policy import dump_configurations

        owner = None if advice.owner_rule is None else advice.owner_rule.to_dict()
        return dump_configurations(_configurations(best, advice), measure=named, made_under=owner)
    from aegis.anonymizers import dump_recipe

    return dump_recipe(best.method.recipe, measure=named)


def _configurations(best: Ranked, advice: Advice) -> dict[str, Configuration]:
    """Return the configurations to write, by name: the best one; if the owner of the table must
    check the rule, all that are listed, best first.
    """
    listed = advice.ranking if _to_check(advice) else (best,)
    return {r.name: r.configuration for r in listed if r.admissible is not False}


def _to_check(advice: Advice) -> bool:
    """Return whether the owner must check the rule, because a protected summary does not say."""
    best = advice.best
    return advice.estimated is not None and best is not None and best.admissible is None


def _next(
    options: AdviseCommand, table: str, output: Path | None, advice: Advice
) -> list[RenderableType]:
    """Return the next command, with the options that read the same table and lead to the same
    figures. `output` is the file with the best configuration or recipe, if it was written.
    """
    counted, best = options.counted, advice.best
    read = {
        "leave_out": counted.dropped,
        "population": counted.population,
        "policy": options.policy_file,
    }
    if output is None or best is None:
        why, best_file = "write the best configuration, for aegis apply", unused("best.yaml")
        words = ("advise", table, *options.opening.words())
        return next_step(why, *words, **read, **_deciding(options), o=best_file)
    if best.method is not None:
        why, words = "group the records", ("anonymize", table)
        chosen: dict[str, object] = {"recipe": output}
        released = "released.parquet"
    else:
        kind = format_of(Path(table))
        subject = "TABLE" if is_bundle(table) or format_of_summary(table) else table
        why, words = "mask the table", ("apply", subject)
        several = len(_configurations(best, advice)) > 1
        chosen = {"configuration": output, "name": best.name if several else None}
        released = f"masked{kind if kind in TABLE_FORMATS else '.parquet'}"
    checked = "and have the result verified and certified"
    if _to_check(advice):
        checked = "and check the rule: the owner of the table does this"
    return next_step(
        f"{why}, {checked}",
        *words,
        *options.opening.words(),
        **read,
        **chosen,
        o=unused(output.with_name(released)),
        certificate=unused(output.with_name("certificate.json")),
        after=counted.after,
        rule_override=bool(advice.rule_override),
    )

"""Level noise: sensitivities by brute force, the promise by a game, and what is published."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protect_support import CANARY, make_table

import aegis
from aegis.advisor import generate
from aegis.errors import DataError, PolicyError
from aegis.privacy import PrivacyRule
from aegis.safe.protect import (
    ProtectedScorer,
    ProtectedSummary,
    Unit,
    dumps,
    load_protected,
    loads,
    protect,
    rank_protected,
    save_protected,
    search_protected,
)
from aegis.safe.protect.mechanisms import discrete_gaussian
from aegis.safe.protect.model import StatedVerdict
from aegis.safe.protect.moments import (
    between_attributes,
    clipped_rows,
    sensitivity_of_blocks,
    sensitivity_of_rows,
)


@given(
    rows=st.lists(st.lists(st.integers(-60, 60), min_size=4, max_size=4), min_size=1, max_size=6),
    longest=st.integers(1, 4000),
)
def test_one_row_moves_the_moments_no_further_than_said(rows, longest):
    offsets = np.array([0, 1, 3, 4])
    clipped = clipped_rows(np.array(rows, dtype=np.int64), longest)
    assert ((clipped**2).sum(axis=1) <= longest).all()
    cross = between_attributes(offsets)
    for row in clipped:
        moved = math.sqrt(float((np.outer(row, row)[cross] ** 2).sum()))
        assert moved <= sensitivity_of_rows(longest, 3) + 1e-9


@given(st.lists(st.lists(st.integers(-40, 40), min_size=2, max_size=2), min_size=3, max_size=3))
def test_blocks_clipped_apart_move_the_moments_no_further_than_said(parts):
    limits = [900, 400, 100]
    row = np.concatenate(
        [clipped_rows(np.array([p]), m)[0] for p, m in zip(parts, limits, strict=True)]
    )
    cross = between_attributes(np.array([0, 2, 4, 6]))
    moved = math.sqrt(float((np.outer(row, row)[cross] ** 2).sum()))
    assert moved <= sensitivity_of_blocks(limits) + 1e-9


@given(st.lists(st.integers(1, 9), min_size=0, max_size=6), st.integers(2, 6))
def test_one_row_changes_rows_in_small_classes_by_less_than_k(sizes, k):
    def below(counts):
        return sum(n for n in counts if n < k)

    more = [[*sizes[:i], sizes[i] + 1, *sizes[i + 1 :]] for i in range(len(sizes))]
    for neighbour in [*more, [*sizes, 1]]:
        assert abs(below(neighbour) - below(sizes)) <= max(k - 1, 1)


def neighbours_of_label_tables():
    """Three attributes; one row more is in one cell of each."""
    tables = [np.array([[5, 2], [0, 1]]), np.array([[4, 3]]), np.array([[1, 1], [4, 2]])]
    more = [t.copy() for t in tables]
    for table in more:
        table[0, 0] += 1
    return *(np.concatenate([t.ravel() for t in ts]) for ts in (tables, more)), math.sqrt(3)


def neighbours_of_moments():
    """The longest row that clipping leaves, spread evenly over three attributes, is added."""
    offsets, longest = np.array([0, 1, 2, 3]), 300
    rows = clipped_rows(np.array([[3, -7, 2], [40, 40, 40]], dtype=np.int64), longest)
    cross = between_attributes(offsets)
    without, with_row = (
        np.einsum("ni,nj->ij", part, part)[cross].astype(np.int64) for part in (rows[:1], rows)
    )
    return without, with_row, sensitivity_of_rows(longest, 3)


def neighbours_of_small_classes():
    """A row more makes a class of k - 1 rows one of k, under each of two configurations."""
    k = 5
    sizes = [np.array([4, 9, 2]), np.array([4, 11])]
    more = [s + (np.arange(len(s)) == 0) for s in sizes]
    without, with_row = (
        np.array([s[s < k].sum() for s in part], dtype=np.int64) for part in (sizes, more)
    )
    return without, with_row, (k - 1) * math.sqrt(2)


def neighbours_of_persons():
    """Two attributes; a person of three rows is added, all of them alike."""
    without = np.array([5, 2, 0, 7], dtype=np.int64)
    return without, without + np.array([3, 0, 0, 3]), 3 * math.sqrt(2)


@pytest.mark.parametrize(
    "neighbours",
    [
        neighbours_of_label_tables,
        neighbours_of_moments,
        neighbours_of_small_classes,
        neighbours_of_persons,
    ],
)
def test_a_distinguishing_game_stays_below_the_promise(neighbours):
    """Whoever sees one of two neighbouring outputs guesses by the best statistic there is.

    For Gaussian noise that is the projection on the line between both, cut at each threshold.
    """
    without, with_row, sensitivity = neighbours()
    apart = (with_row - without).astype(float)
    assert 0.8 * sensitivity <= np.linalg.norm(apart) <= sensitivity + 1e-9
    draws, delta, rho = 8_000, 0.01, 0.05
    sigma = aegis.safe.protect.sigma_of(sensitivity, rho)
    seen = [
        discrete_gaussian(np.tile(figures, (draws, 1)), sigma, sensitivity, rho) @ apart
        for figures in (without, with_row)
    ]
    epsilon = aegis.safe.protect.epsilon_of(rho, delta)
    worst = 0.0
    for cut in np.quantile(np.concatenate(seen), np.linspace(0.02, 0.98, 49)):
        miss, hit = ((figures >= cut).mean() for figures in seen)
        for p, q in ((hit, miss), (miss, hit), (1 - hit, 1 - miss), (1 - miss, 1 - hit)):
            low = p - 3 * math.sqrt(p * (1 - p) / draws) - delta
            high = q + 3 * math.sqrt(q * (1 - q) / draws) + 1e-12
            if low > 0:
                worst = max(worst, math.log(low / high))
    assert 0.1 * epsilon < worst <= epsilon


def test_a_game_with_too_little_noise_is_won():
    """The game can be lost: noise for half of the sensitivity breaks the promise."""
    draws, delta, rho = 20_000, 1e-4, 0.5
    sigma = aegis.safe.protect.sigma_of(0.2, rho)
    zeros = np.zeros(draws, dtype=np.int64)
    seen = [discrete_gaussian(zeros + one, sigma, 0.2, rho) for one in (0, 1)]
    epsilon = aegis.safe.protect.epsilon_of(rho, delta)
    hit, miss = (seen[1] >= 1).mean(), (seen[0] >= 1).mean()
    assert math.log((hit - delta) / max(miss, 1 / draws)) > epsilon


def test_the_promise_is_spent_and_no_more(protected):
    said = protected.protection
    assert said.rho == pytest.approx(sum(r.rho for r in said.rounds))
    assert aegis.safe.protect.epsilon_of(said.rho, said.delta) <= said.epsilon
    assert [r.name for r in said.rounds] == ["label tables", "moments of codes"]
    assert said.rounds[0].sensitivity == pytest.approx(2.0)


def test_persons_need_as_much_more_noise_as_they_have_rows(policy):
    rows = protect(make_table(500), policy, epsilon=2, delta=1e-5, public=["*"])
    persons = protect(
        make_table(500),
        policy,
        **{"epsilon": 2, "delta": 1e-5, "public": ["*"], "unit": Unit.PERSONS},
        rows_per_person=3,
    )
    # Of the first round: whether label tables are measured again depends on what was drawn.
    first, other = rows.protection.rounds[0], persons.protection.rounds[0]
    assert first.name == other.name
    assert other.sigma == pytest.approx(3 * first.sigma)


def test_a_person_with_more_rows_than_stated_is_refused(policy):
    with pytest.raises(PolicyError, match="more than 2 rows"):
        protect(
            make_table(50),
            policy,
            **{"epsilon": 2, "delta": 1e-5, "unit": "persons", "rows_per_person": 2},
            person="city",
        )


def test_unnamed_values_are_in_no_byte(policy):
    text = dumps(protect(make_table(800, canary=True), policy, epsilon=3, delta=1e-5))
    assert CANARY not in text
    assert "98765" not in text
    assert "aa" in text


def test_moments_of_rows_and_of_pairs_agree_without_clipping(policy):
    table = make_table(400)
    summary = aegis.summarize(table, policy)
    from aegis.safe.protect.cells import cells_of
    from aegis.safe.protect.moments import moments_of_pairs, moments_of_rows
    from aegis.sources import open_table

    cells = [cells_of(a) for a in summary.attributes.values()]
    random = np.random.default_rng(1)
    codes = [random.integers(-50, 50, (c.count, 2)) for c in cells]
    far = 10**6
    pairs = moments_of_pairs(summary, cells, codes, [far] * len(cells)).sums
    listed = [(summary.attributes[c.name].values, c) for c in cells]
    source = open_table(table)
    rows = moments_of_rows(source, source.table, listed, codes, far).sums
    assert np.array_equal(pairs, rows)
    # By brute force, row by row.
    brute = np.zeros_like(pairs)
    place = {c.name: dict(zip(v.to_pylist(), c.of_value.tolist(), strict=True)) for v, c in listed}
    for row in table.to_pylist():
        whole = np.concatenate(
            [code[place[c.name][row[c.name]]] for c, code in zip(cells, codes, strict=True)]
        )
        brute += np.outer(whole, whole)
    cross = between_attributes(np.array([0, 2, 4, 6, 8]))
    assert np.array_equal(np.where(cross, pairs, 0), np.where(cross, brute, 0))


def test_without_noise_the_score_is_the_registered_measure(policy):
    """Huge epsilon: the finest and each single mask score as the exact measure does, nearly."""
    table = make_table(4000)
    summary = aegis.summarize(table, policy)
    strong = protect(table, policy, epsilon=50, delta=0.5, public=["*"])
    scorer = ProtectedScorer(strong)
    from aegis.advisor import Scorer
    from aegis.measures import get

    exact = Scorer(summary)
    names = list(summary.attributes)
    for choice in itertools.product(range(3), range(3), range(2), range(2)):
        masks = {n: summary.attributes[n].candidates[c] for n, c in zip(names, choice, strict=True)}
        expected = exact.value(masks, get("held-out-target-coded"))
        assert scorer.score(choice) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(("delta", "noted"), [(0.5, True), (1e-6, False)])
def test_a_delta_under_which_a_row_could_be_published_whole_is_noted(policy, delta, noted):
    made = protect(make_table(600), policy, epsilon=1, delta=delta, public=["*"])
    assert any("choose less than 1 / rows" in note for note in made.notes) is noted


def test_ranking_marks_ties_and_states_errors(protected):
    advice = rank_protected(protected, generate_count=12, seed=3)
    assert len(advice.ranking) == 12
    first = advice.ranking[0]
    assert first.stderr > 0
    assert first.tied_with_best
    assert first.admissible is None
    assert any(
        "does not state which configurations meet the privacy rule" in w for w in advice.warnings
    )
    scores = [r.score for r in advice.ranking]
    assert scores == sorted(scores, reverse=True)


def test_a_ranking_takes_the_configurations_of_a_policy(protected, policy):
    drawn = [r.configuration for r in rank_protected(protected, generate_count=3, seed=3).ranking]
    own = replace(policy, configurations={c.name: c for c in drawn})
    assert {r.name for r in rank_protected(protected, policy=own).ranking} == {
        c.name for c in drawn
    }
    assert len(rank_protected(protected, policy=own, generate_count=5).ranking) == 5
    assert len(rank_protected(protected, drawn[:2], policy=own).ranking) == 2


def test_generated_configurations_are_those_of_an_exact_summary(policy):
    """The same masks in the same order, the least masked ones first."""
    summary = aegis.summarize(make_table(3000), policy)
    protected = protect(summary, policy, epsilon=4, delta=1e-6, public=["*"])
    for count, seed in ((5, 0), (12, 3), (50, 1)):
        ranked = {
            r.name: r.declared
            for r in rank_protected(protected, generate_count=count, seed=seed).ranking
        }
        expected = [
            {
                n: str(summary.attributes[n].candidate(m).declared)
                for n, m in configuration.masks.items()
            }
            for configuration in generate(summary, count, seed=seed)
        ]
        assert [ranked[name] for name in sorted(ranked)] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"generate_count": 0}, "0 configurations cannot be generated"),
        ({"seed": -1}, "seed -1 is negative"),
        ({"configurations": []}, "list of configurations is empty"),
        ({"configurations": [], "generate_count": 3}, "both configurations and a number"),
        ({"configurations": ["c01"]}, "not a configuration"),
    ],
)
def test_mistakes_in_what_to_rank_are_refused_as_for_an_exact_summary(
    protected, policy, options, message
):
    study = aegis.Study(make_table(60), policy)
    for rank in (study.rank, aegis.Study(protected, policy).rank):
        with pytest.raises(PolicyError, match=message):
            rank(**options)
    with pytest.raises(PolicyError, match=message):
        rank_protected(protected, **options)


def test_search_is_the_best_of_all(protected):
    found = search_protected(protected, top=3)
    assert found.optimal
    assert found.search.work.checked == found.combinations == 36
    scorer = ProtectedScorer(protected)
    every = [scorer.score(c) for c in itertools.product(range(3), range(3), range(2), range(2))]
    assert found.ranking[0].score == pytest.approx(max(every))


def test_verdicts_with_noise_are_stated_where_they_are_sure(policy):
    from aegis.policy import Configuration

    table = make_table(3000)
    summary = aegis.summarize(table, policy)
    coarse = {n: a.candidates[-1].mask for n, a in summary.attributes.items()}
    fine = {n: a.candidates[0].mask for n, a in summary.attributes.items()}
    stated = protect(
        table,
        policy,
        **{"epsilon": 5, "delta": 1e-6, "public": ["*"]},
        verdicts=[Configuration("coarse", coarse), Configuration("fine", fine)],
    )
    assert stated.verdicts[0].admissible is True
    assert PrivacyRule.parse(dict(stated.rule)).minimum_size == 3
    assert [r.name for r in stated.protection.rounds][-1] == "rows in small classes"


def test_a_verdict_on_a_configuration_without_a_mask_is_refused(policy):
    from aegis.policy import Configuration

    bare = [Configuration("bare", {})]
    with pytest.raises(PolicyError, match="'bare' does not mask"):
        protect(make_table(300), policy, epsilon=5, delta=1e-6, public=["*"], verdicts=bare)


def test_a_file_gives_the_same_summary(protected, tmp_path):
    page = tmp_path / "a.protected"
    digest = save_protected(protected, page)
    assert len(digest) == 64
    again = load_protected(page)
    assert dumps(again) == page.read_text()
    ranks = [
        [r.name for r in rank_protected(s, generate_count=9).ranking] for s in (protected, again)
    ]
    assert ranks[0] == ranks[1]
    with pytest.raises(PolicyError, match="exists"):
        save_protected(protected, page)


def test_a_tampered_file_is_refused(protected, tmp_path):
    text = dumps(protected)
    with pytest.raises(DataError, match="digest"):
        loads(text.replace('"version": 1', '"version": 1').replace('"f"', '"x"'))
    with pytest.raises(DataError, match="version 9"):
        loads(text.replace('"version": 1', '"version": 9'))
    with pytest.raises(DataError, match="not JSON"):
        loads(text[:-20])
    with pytest.raises(DataError, match="not a protected summary"):
        loads("{}")
    with pytest.raises(DataError):
        load_protected(tmp_path / "missing.protected")


def test_exact_summaries_and_protected_ones_do_not_mix(protected, policy):
    with pytest.raises(PolicyError, match="protected already"):
        protect(protected, policy, epsilon=1, delta=1e-6)
    assert not isinstance(protected, aegis.Summary)
    for name in ("pairs", "frequency", "folds", "label_attribute"):
        assert not hasattr(protected, name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0, "delta": 1e-6}, "Epsilon is 0"),
        ({"epsilon": 1, "delta": 2}, "Delta is 2"),
        ({"epsilon": 1}, "needs an epsilon and a delta"),
        ({"epsilon": 1, "delta": 1e-6, "public": ["nobody"]}, "Unknown attribute"),
        ({"epsilon": 1, "delta": 1e-6, "rows_per_person": 2}, "rows per person"),
        ({"epsilon": 1, "delta": 1e-6, "key": b"x" * 16}, "Level noise takes no"),
        ({"level": "none"}, "protects nothing"),
        ({"level": "secret"}, "Unknown level"),
        ({"epsilon": 1, "delta": 1e-6, "verdicts": 5}, "more than the 5"),
        ({"epsilon": "1", "delta": 1e-6}, "epsilon is '1'"),
        ({"epsilon": True, "delta": 1e-6}, "epsilon is True"),
        ({"epsilon": 1, "delta": [1e-6]}, r"delta is \[1e-06\]"),
        ({"epsilon": 1, "delta": 1e-6, "unit": "person"}, "Unknown unit 'person'"),
        ({"epsilon": 1, "delta": 1e-6, "rows_per_person": "1"}, "rows_per_person is '1'"),
    ],
)
def test_bad_requests_are_refused(policy, options, message):
    with pytest.raises(PolicyError, match=message):
        protect(make_table(60), policy, **options)


def test_one_attribute_that_says_anything_leaves_nothing_to_correlate(policy):
    import pyarrow as pa

    rows = [r | {"city": "aa", "sex": "f", "hours": 40} for r in make_table(400).to_pylist()]
    summary = aegis.summarize(pa.Table.from_pylist(rows), policy)
    # Noise may let a constant seem to say something: that is seldom so.
    draws = [protect(summary, policy, epsilon=20, delta=1e-6, public=["*"]) for _ in range(8)]
    without = [made for made in draws if made.moments is None]
    assert without
    for made in without:
        assert "fewer than two attributes" in made.notes[0]
        assert made.protection.rounds[-1].name == "label tables again"


def test_a_sample_of_co_occurrences_is_refused(policy):
    summary = aegis.summarize(make_table(900), policy, sample_rows=100)
    with pytest.raises(PolicyError, match="sample"):
        protect(summary, policy, epsilon=20, delta=1e-6, public=["*"])


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_any_small_table_can_be_protected(policy, seed):
    found = protect(make_table(40, seed=seed), policy, epsilon=1, delta=1e-3)
    assert isinstance(found, ProtectedSummary)
    assert loads(dumps(found)).classes == ("high", "low")
    assert rank_protected(found, generate_count=3).ranking


def test_a_search_says_what_stopped_it_and_proves_nothing_that_it_did_not_see(protected):
    for moments in (protected.moments, None):
        late = search_protected(replace(protected, moments=moments), time_limit=0.0)
        assert late.search.stopped == "time limit"
        assert not late.optimal
    refused = tuple(replace(v, admissible=False) for v in every_verdict(protected))
    some = search_protected(replace(protected, verdicts=refused[:3]))
    assert (some.best, some.search.stopped, some.undecided) == (None, "verdicts", True)
    all_of_them = search_protected(replace(protected, verdicts=refused))
    assert (all_of_them.best, all_of_them.search.stopped) == (None, None)
    assert not all_of_them.undecided
    whole = search_protected(protected)
    assert whole.search.stopped is None


def every_verdict(summary):
    sizes = [range(len(a.candidates)) for a in summary.attributes.values()]
    return [StatedVerdict(choice, True) for choice in itertools.product(*sizes)]

"""The finished document: complete, self-contained, accessible, and safe with hostile text."""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aegis.advisor import Advice
from aegis.advisor.figures import Binding, EstimatedScores, MaskChange
from aegis.advisor.owner_preview import ColumnChange, ReleaseValues, Share
from aegis.advisor.ranked import AttributeEstimate, Estimate, PrivacyChange, RecordLevel
from aegis.advisor.several import ServedLabel
from aegis.anonymizers import InformationLoss, Recipe
from aegis.errors import InternalError
from aegis.masks import parse_mask
from aegis.policy import Configuration
from aegis.privacy import PrivacyAccount, PrivacyLoss
from aegis.report import render_report
from aegis.report.charts import fit, text_width
from aegis.report.context import build_context
from aegis.report.svg import _require_plain
from aegis.summary import Information
from report_factory import BINDING, FRONT, advice, many, privacy, ranked

HOSTILE = [
    "<script>alert(1)</script>",
    "\"onload='x' & ]]> {{ 7*7 }} {% raw %}",
    "</style></svg><img src=x onerror=alert(2)>",
    "Größe 年齢 العمر \u202egnp.exe 👩‍👩‍👧",
    "datum.value + `${1}` \\u0022 \x00\ud800",
    "x" * 3000,
    "with spaces " * 60,
]
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Document(HTMLParser):
    """Collects elements and checks that they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.stack: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.words.append(data)

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words).replace("\u00a0", " "))


@pytest.fixture(scope="module")
def full() -> str:
    names = [f"attribute-{i}" for i in range(14)]
    return render_report(
        replace(
            advice(
                many(50, names, admissible=12), attributes=names, warnings=["a sample was used"]
            ),
            front=FRONT,
            binding=BINDING,
            privacy=PrivacyChange(
                privacy([1, 2, 3, 40, 200], sensitive="job"),
                privacy([6, 40, 200], sensitive="job"),
            ),
        ),
    )


@pytest.fixture(scope="module")
def hostile() -> str:
    ranking = [
        ranked(
            name.replace("\ud800", ""),  # refused in names of configurations
            attributes=HOSTILE,
            admissible=i < 3,
            violations=[] if i < 3 else [name],
        )
        for i, name in enumerate(HOSTILE)
    ]
    given = advice(
        ranking,
        attributes=HOSTILE,
        label=HOSTILE[0],
        warnings=HOSTILE,
        unnamed=HOSTILE,
        more={name: {"role": "ignore"} for name in HOSTILE},
    )
    change = PrivacyChange(
        privacy([1, 9], sensitive=HOSTILE[2]), privacy([5, 5], sensitive=HOSTILE[2])
    )
    given = replace(given, privacy=change)
    return render_report(_with_every_section(given), title=HOSTILE[2], shown=_hostile_values())


def _with_every_section(given: Advice) -> Advice:
    """Add the sections that appear only with data, each with the hostile names."""
    masks = dict(pairwise(HOSTILE))
    estimates = {name: AttributeEstimate(0.2, 0.1, 0.3, 0.15) for name in HOSTILE}
    lossy = InformationLoss(0.125, 0.25, 0.0625, 4321, 7.5, 1.25)
    recipe = Recipe("mdav", {"k": 5})
    method = RecordLevel(recipe, 9, 0, True, lossy, 1.5, tuple(HOSTILE), privacy([5, 5]))
    account = PrivacyAccount(
        tuple(PrivacyLoss(name, 1.0, 0.0, name, 1.0) for name in HOSTILE), exact=tuple(HOSTILE)
    )
    ranking = [
        replace(
            one,
            differential_privacy=account,
            labels=dict.fromkeys(HOSTILE, 50.0),
            estimate=Estimate(one.name, "mi", Information.RAW, "exact", 0.1, (0.0, 0.2), estimates),
        )
        for one in given.ranking
    ]
    ranking[-1] = replace(ranking[-1], method=method)
    finer, relaxed = BINDING.finer[0], BINDING.relaxations[0]
    binding = Binding(
        tuple(replace(finer, attribute=n, current=n, mask=n, violations=(n,)) for n in HOSTILE),
        tuple(replace(relaxed, change=name, masks=masks) for name in HOSTILE),
    )
    front = replace(
        FRONT,
        parameter=HOSTILE[4],
        points=tuple(replace(one, declared=masks) for one in FRONT.points),
    )
    changes = tuple(MaskChange(name, name, 0.3, 0.1, 0.05, tied=True) for name in HOSTILE)
    served = ServedLabel("", 1.0, "held-out-auc", 0.7, 0.5, 0.8, 60.0)
    return replace(
        given,
        ranking=tuple(ranking),
        binding=binding,
        front=front,
        estimated=EstimatedScores("codes", changes),
        labels=tuple(replace(served, label=name) for name in HOSTILE),
        measure="share-kept(mean)",
    )


def _hostile_values() -> ReleaseValues:
    values = tuple((name, 3) for name in HOSTILE)
    shares = tuple(Share(name, name, 9, 3) for name in HOSTILE)
    return ReleaseValues(
        tuple(ColumnChange(name, values, values, 7, 7) for name in HOSTILE),
        shares,
        shares,
        tuple(HOSTILE),
        (tuple(HOSTILE),),
    )


def test_every_section_stands_in_the_document(full: str) -> None:
    ids = [a["id"] for _, a in Document(full).elements if "id" in a]
    sections = ["recommendation", "attributes", "comparison", "privacy", "rule", "front", "binding"]
    assert {*sections, "documents", "reading", "provenance"} <= set(ids)
    assert Counter(ids).most_common(1)[0][1] == 1


def test_what_is_said_in_words(full: str) -> None:
    text = Document(full).text()
    assert "Release c00: it keeps " in text
    assert "meets k-anonymity (k = 5), and suppresses " in text
    assert (
        "It is the best of 12 that meet the rule, among 50 configurations that were ranked" in text
    )
    assert "The best 20 of 50 configurations" in text
    assert "A small screen shows the first 10; the table below has all 20." in text
    assert "A sample was used." in text
    assert "At the knee, k = 5 (94.0 % kept)" in text
    assert "What would break" in text
    assert "Pillai's trace, adjusted" in text
    for name in ("PUD: ", "Predictive utility deviation: "):
        assert f"{name}how much masking changes the score of an attribute by itself" in text


def test_the_document_loads_nothing(full: str, hostile: str) -> None:
    for text in (full, hostile):
        document = Document(text)
        assert document.tags().isdisjoint(
            {"script", "link", "img", "iframe", "object", "image", "use", "foreignobject"}
        )
        for _, attributes in document.elements:
            links = [v for k, v in attributes.items() if k in ("src", "href", "xlink:href", "data")]
            own = "#" if "download" not in attributes else "data:application/yaml;base64,"
            assert all(link and link.startswith(own) for link in links)
            assert not [k for k in attributes if k.startswith("on")]
        style = text[text.index("<style>") : text.index("</style>")]
        assert "url(" not in style
        assert "@import" not in style
        assert "default-src 'none'" in text


def test_links_and_labels_point_to_what_is_there(full: str) -> None:
    elements = Document(full).elements
    ids = {a["id"] for _, a in elements if "id" in a}
    pointed = [
        (a.get("href") or "#")[1:] for tag, a in elements if tag == "a" and "download" not in a
    ]
    for _, attributes in elements:
        pointed += (attributes.get("aria-labelledby") or "").split()
    assert set(pointed) <= ids


def test_one_page_decides_and_the_rest_is_folded(full: str) -> None:
    page = full[full.index("<main>") : full.index("</main>")]
    open_part = re.sub(r'<details class="fold">.*?\n</details>', "", page, flags=re.DOTALL)
    assert set(re.findall(r'<section[^>]* id="([a-z]+)"', open_part)) == {
        "recommendation",
        "attributes",
    }
    assert page.count('<details class="fold">') >= 6


def test_policy_and_configuration_are_downloads(full: str) -> None:
    links = {a["download"]: a["href"] for _, a in Document(full).elements if "download" in a}
    assert set(links) == {"configuration.yaml", "policy.yaml"}
    read = {
        name: yaml.safe_load(b64decode(str(link).partition("base64,")[2]))
        for name, link in links.items()
    }
    assert read["policy.yaml"]["version"] == 1
    assert list(read["configuration.yaml"]["configurations"]) == ["c00"]


def test_configurations_are_named_with_what_differs() -> None:
    first = ranked("best-1", attributes=["age", "sex"])
    masks = {**first.configuration.masks, "sex": parse_mask("suppress")}
    other = replace(first, configuration=Configuration("best-2", masks))
    both = advice([first, other], attributes=["age", "sex"])
    told = build_context(both, title="Advice")["ranking"]
    assert [point["label"] for point in told["points"]] == ["best-1", "best-2: sex"]
    assert [row["differs"] for row in told["rows"]] == ["", "sex: suppressed"]


def test_every_chart_has_a_title_and_a_description(full: str) -> None:
    drawings = re.findall(r"<svg [^>]*role=\"img\".*?</svg>", full, re.DOTALL)
    assert len(drawings) == 10
    for drawing in drawings:
        assert re.search(
            r"<title id=\"[\w-]+\">[^<]+</title><desc id=\"[\w-]+\">[^<]+</desc>", drawing
        )
        assert not re.findall(r"(?:fill|stroke)=\"(?!var\(|none|transparent)[^\"]+\"", drawing)


def test_shape_tells_what_colour_tells(full: str) -> None:
    ranking = full[full.index('id="ranking-wide-title"') :]
    ranking = ranking[: ranking.index("</svg>")]
    symbols = re.findall(r' d="(M[^"]+)" fill="([^"]+)" stroke="([^"]+)"', ranking)
    shapes = {("A" in path, fill, stroke) for path, fill, stroke in symbols}
    assert (True, "var(--accent)", "var(--accent)") in shapes
    assert (False, "var(--card)", "var(--caution)") in shapes


def test_hostile_text_is_shown_and_does_nothing(hostile: str) -> None:
    document = Document(hostile)
    sections = {a["id"] for tag, a in document.elements if tag == "section"}
    optional = {"front", "binding", "noise", "shown", "labels", "estimates", "changes", "records"}
    assert optional <= sections
    text = document.text()
    assert "<script>alert(1)</script>" in text
    assert "{{ 7*7 }} {% raw %}" in text
    assert "Größe 年齢 العمر \ufffdgnp.exe 👩‍👩‍👧" in text
    assert "\u202e" not in hostile
    assert "\x00" not in hostile
    outside_yaml = [len(run) for run in re.findall("x+", text) if len(run) != 3000]
    assert max(outside_yaml) <= 600
    hostile.encode("utf-8")


def test_text_in_charts_is_escaped(hostile: str) -> None:
    drawings = re.findall(r"<svg [^>]*role=\"img\".*?</svg>", hostile, re.DOTALL)
    assert any("&lt;script&gt;" in drawing for drawing in drawings)
    for drawing in drawings:
        _require_plain(drawing.replace("<desc", "<title").replace("</desc", "</title"))


def test_size_stays_below_a_megabyte(full: str, hostile: str) -> None:
    assert max(len(full.encode()), len(hostile.encode())) < 1_000_000


def test_the_same_advice_gives_the_same_bytes() -> None:
    given = replace(advice(), privacy=PrivacyChange(privacy([2, 9])))
    assert render_report(given) == render_report(given)


def test_none_admissible_is_said_first() -> None:
    near = ranked("near", suppressed=31, admissible=False, violations=["k-anonymity: 31 rows"])
    text = Document(render_report(advice([near], optimal=True))).text()
    assert "No admissible configuration" in text
    assert "near came closest, and would pass with a suppression limit of 3.10 %." in text
    assert "What the closest configuration does to each attribute" in text
    assert "k-anonymity: 31 rows." in text
    assert "Proven best" not in text


def test_nothing_to_rank_and_no_rule() -> None:
    text = Document(render_report(advice([], rule={}))).text()
    assert "No configuration was ranked, so there is nothing to recommend." in text
    assert "The policy has no privacy criterion" in text


def test_sections_without_data_are_left_out_and_privacy_is_by_class_size() -> None:
    given = advice(
        [ranked(suppressed=0), ranked("c2", suppressed=0, utility_kept=40)],
        measure="g3",
        optimal=True,
    )
    document = render_report(given)
    ids = {a.get("id") for _, a in Document(document).elements}
    assert ids.isdisjoint({"privacy", "front", "binding", "histogram-wide-title"})
    text = Document(document).text()
    assert "suppresses no row." in text
    assert "rows of the smallest class" in text
    assert "None of the 48 combinations of masks does better" in text


@given(st.text(max_size=60), st.floats(20, 200))
def test_labels_fit_and_keep_whole_characters(text: str, pixels: float) -> None:
    shown = fit(text, pixels)
    assert text_width(shown) <= pixels
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


@pytest.mark.parametrize(
    "text",
    [
        "<svg><script>1</script></svg>",
        "<svg><a href='x'/></svg>",
        "<svg><rect onclick='x'/></svg>",
        "<svg><g></svg>",
    ],
)
def test_a_drawing_with_anything_but_shapes_is_refused(text: str) -> None:
    with pytest.raises(InternalError):
        _require_plain(text)


def test_adult_reads_as_one_report(shared_data: Path) -> None:
    import pyarrow.csv as csv

    from aegis import Study
    from aegis.advisor.scoring import Scorer
    from aegis.policy import load_policy
    from aegis.privacy import report

    table = csv.read_csv(
        shared_data / "adult" / "adult.data",
        read_options=csv.ReadOptions(autogenerate_column_names=True),
    )
    names = ("age", "education", "sex", "income")
    columns = [table.column(i) for i in (0, 3, 9, 14)]
    small = pa.table(dict(zip(names, columns, strict=True))).slice(0, 3000)
    masks = ["identity", {"bucketize": {"width": 10}}, "suppress"]
    policy = load_policy(
        {
            "version": 1,
            "label": "income",
            "privacy": {"k": 5, "suppression": 0.02},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": masks},
                "education": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
                "sex": {"role": "quasi-identifier", "masks": ["identity"]},
            },
        }
    )
    prepared = Study(small, policy)
    summary, plan = prepared.summary, prepared.plan
    found = prepared.rank(generate_count=6)
    scorer = Scorer(summary)
    classes = plan.classes(scorer.choose(found.require_best().configuration))
    after = report(classes.keep(plan.rule.check(classes).kept_classes))
    assert found.privacy.after.to_dict() == after.to_dict()
    before = report(plan.classes(scorer.unmasked))
    text = Document(render_report(found)).text()
    assert f"Release {found.require_best().name}: it keeps" in text
    assert "None of the 6 combinations of masks does better" in text
    assert f"{before.uniques} before masking" in text

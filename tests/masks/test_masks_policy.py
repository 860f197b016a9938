"""Masks as policies write them: registry, parsing, errors, composition."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from masks_support import counted, masked

from aegis.errors import InternalError, PolicyError
from aegis.masks import (
    MASKS,
    Blur,
    BottomCode,
    Bucketize,
    Compose,
    EqualWidth,
    EraseDigits,
    Group,
    Hierarchy,
    Identity,
    KeepFrequent,
    Kind,
    Level,
    Quantiles,
    Round,
    Suppress,
    Tokenise,
    TopCode,
    Truncate,
    parse_mask,
)

TREE = Hierarchy((("a", "g", "*"), ("b", "h", "*")))

numbers = st.integers(-1000, 1000) | st.integers(-4000, 4000).map(lambda n: n / 8)
positive = st.integers(1, 1000) | st.integers(1, 4000).map(lambda n: n / 8)
edges = st.sets(numbers, max_size=4).map(lambda cuts: tuple(sorted(cuts)))
names = st.text(min_size=1, max_size=5)
values = (
    st.sets(st.text(max_size=3) | st.integers(), max_size=3)
    .map(tuple)
    .filter(lambda found: len({str(value) for value in found}) == len(found))
)
simple = st.one_of(
    st.just(Identity()),
    st.just(Suppress()),
    st.builds(Bucketize, positive, numbers, st.sampled_from(["interval", "lower"])),
    st.builds(EqualWidth, st.integers(5, 9), st.none() | edges),
    st.builds(Quantiles, st.integers(5, 9), st.none() | edges),
    st.builds(lambda step: Round(step=step), positive),
    st.builds(lambda digits: Round(digits=digits), st.integers(1, 15)),
    st.builds(TopCode, numbers),
    st.builds(BottomCode, numbers),
    st.builds(EraseDigits, st.integers(1, 18)),
    st.builds(Truncate, st.sampled_from(["day", "week", "month", "quarter", "year"])),
    st.builds(Blur, st.integers(0, 9), st.none(), st.sampled_from(["leading", "trailing"])),
    st.builds(Blur, st.none(), st.integers(1, 9), st.none(), st.characters()),
    st.builds(KeepFrequent, st.integers(3, 9), names, st.none() | values),
    st.builds(
        lambda mapping, rest: Group({n: [v] for v, n in mapping.items()}, rest),
        st.dictionaries(st.integers(0, 9), names, min_size=1).filter(
            lambda found: len(set(found.values())) == len(found)
        ),
        st.sampled_from(["error", "keep", "other"]),
    ),
    st.builds(Level, st.integers(0, 2), st.just(TREE)),
    st.builds(
        lambda name, length: Tokenise(key_env=name, length=length), names, st.integers(8, 64)
    ),
)
masks = simple | st.lists(simple, min_size=2, max_size=3).map(lambda found: Compose(tuple(found)))


@given(masks)
def test_every_mask_survives_its_yaml(mask):
    spec = mask.spec()
    assert parse_mask(spec, hierarchy=TREE) == mask
    text = yaml.safe_dump(spec, allow_unicode=True)
    again = parse_mask(yaml.safe_load(text), hierarchy=TREE)
    assert again == mask
    assert hash(again) == hash(mask)
    assert again.spec() == spec
    assert str(again) == str(mask)


def test_the_registry_describes_every_mask():
    for entry in MASKS:
        assert entry.summary.endswith(".")
        assert entry.kinds
        example = parse_mask(yaml.safe_load(entry.example), hierarchy=TREE)
        assert isinstance(example, entry.mask)
        assert dataclasses.is_dataclass(entry.mask)
        for parameter in entry.parameters:
            assert parameter.doc
            assert parameter.required == (parameter.name in entry.mask.required())
        assert parse_mask(example.spec(), hierarchy=TREE) == example
    # Policies and certificates name them, so none may go; a new one needs no line here.
    assert set(MASKS.names()) >= {
        "identity", "suppress", "bucketize", "equal_width", "quantiles", "round", "top_code",
        "bottom_code", "erase_digits", "truncate", "blur", "keep_frequent", "group", "level",
        "compose", "tokenise", "laplace", "geometric", "add_uniform", "scale_uniform",
        "date_noise", "randomised_response", "pram", "shuffle",
    }  # fmt: skip
    assert [p.name for p in MASKS.get("level").parameters] == ["level"]


def test_specs_read_as_policies_write_them():
    assert Bucketize(10).spec() == {"bucketize": {"width": 10}}
    assert Suppress().spec() == "suppress"
    assert parse_mask({"suppress": None}) == parse_mask({"suppress": {}}) == Suppress()
    assert str(Bucketize(10)) == "bucketize(width=10)"
    group = Group({"north": ["Oslo"], "south": ["Rome"]}, "other")
    assert group.spec() == {
        "group": {"groups": {"north": ["Oslo"], "south": ["Rome"]}, "rest": "other"}
    }
    assert Compose((TopCode(90), Suppress())).spec() == {
        "compose": [{"top_code": {"at": 90}}, "suppress"]
    }
    assert parse_mask({"compose": {"masks": ["identity", "suppress"]}}) == Compose(
        (Identity(), Suppress())
    )


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("bucketise", ["Unknown mask 'bucketise'", "Did you mean 'bucketize'?", "suppress"]),
        ({"bucketize": {"widht": 10}}, ["parameter of mask 'bucketize': 'widht'", "'width'?"]),
        ("bucketize", ["'bucketize' lacks the parameter 'width'", "{bucketize: {width: 10}}"]),
        ({"bucketize": 10}, ["'bucketize' is given 10", "{bucketize: {width: 10}}"]),
        ({"bucketize": {"width": 0}}, ["'bucketize'", "'width' is 0", "a number above 0"]),
        ({"bucketize": {"width": "ten"}}, ["'width' is 'ten'", "a number above 0"]),
        ({"bucketize": {"width": True}}, ["'width' is True", "a number above 0"]),
        ({"bucketize": {"width": float("nan")}}, ["'width' is nan", "a number above 0"]),
        ({"bucketize": {"width": float("inf")}}, ["'width' is inf", "a number above 0"]),
        ({"bucketize": {"width": 1e-13}}, ["'width' is 1e-13", "12 decimal places"]),
        ({"bucketize": {"width": 2**60}}, ["'width' is 1152921504606846976", "at most"]),
        ({"bucketize": {"width": 10**9, "origin": 1e-9}}, ["'width'", "fewer decimal places"]),
        ({"bucketize": {"width": 1, "show": "upper"}}, ["'show' is 'upper'", "interval, lower"]),
        ({"equal_width": {"count": 1}}, ["'count' is 1", "a whole number, at least 2"]),
        ({"equal_width": {"count": 2.0}}, ["'count' is 2.0", "a whole number"]),
        ({"quantiles": {"count": -4}}, ["'count' is -4", "at least 2"]),
        ({"quantiles": {"count": 4, "edges": [2, 1]}}, ["'edges' is [2, 1]", "ascending order"]),
        ({"quantiles": {"count": 2, "edges": [1, 2]}}, ["'edges' is [1, 2]", "at most 1 cut"]),
        ({"quantiles": {"count": 2, "edges": "1"}}, ["'edges' is '1'", "a list of numbers"]),
        ({"round": {}}, ["'step' or 'digits'; neither given", "{round: {step: 5}}"]),
        ({"round": {"step": 5, "digits": 2}}, ["'step' or 'digits'; both given"]),
        ({"round": {"digits": 16}}, ["'digits' is 16", "at most 15"]),
        ({"top_code": {"at": None}}, ["'at' is None", "a finite number"]),
        ({"erase_digits": {"digits": 0}}, ["'digits' is 0", "at least 1 and at most 18"]),
        ({"truncate": {"unit": "months"}}, ["'unit' is 'months'", "Did you mean 'month'?"]),
        ({"blur": {"keep": 1, "hide": 1}}, ["'keep' or 'hide'; both given"]),
        ({"blur": {"keep": -1}}, ["'keep' is -1", "at least 0"]),
        ({"blur": {"hide": 0}}, ["'hide' is 0", "at least 1"]),
        ({"blur": {"keep": 1, "symbol": "**"}}, ["'symbol' is '**'", "one character"]),
        ({"blur": {"keep": 1, "side": "left"}}, ["'side' is 'left'", "leading, trailing"]),
        ({"keep_frequent": {"count": 0}}, ["'count' is 0", "at least 1"]),
        ({"keep_frequent": {"count": 2, "values": ["a", "a"]}}, ["'values'", "none twice"]),
        ({"keep_frequent": {"count": 1, "values": ["a", "b"]}}, ["'values'", "at most 1 values"]),
        ({"group": {"groups": {"g": ["a"], "h": ["a"]}}}, ["'a' is in the groups 'g' and 'h'"]),
        ({"group": {"groups": {}}}, ["'groups' is {}", "at least one group"]),
        ({"group": {"groups": ["a"]}}, ["'groups' is ['a']", "a mapping"]),
        ({"group": {"groups": {"g": "a"}}}, ["'groups.g' is 'a'", "a list"]),
        ({"group": {"groups": {"g": ["a"]}, "rest": "drop"}}, ["'rest' is 'drop'", "error, keep"]),
        ({"compose": ["identity"]}, ["a list of two or more masks"]),
        ({"compose": [{"bucketize": {"width": 0}}, "identity"]}, ["'width' is 0"]),
        ({"tokenise": {}}, ["'key_env' or 'key_file'; neither given"]),
        ({"tokenise": {"key_env": ""}}, ["'key_env' is ''", "not empty"]),
        ({"tokenise": {"key_env": "K", "length": 4}}, ["'length' is 4", "at least 8"]),
        ({"level": "one"}, ["'level' is 'one'", "a whole number"]),
        ({"bucketize": {"width": 1}, "suppress": {}}, ["is not a mask", "Write a name"]),
        (7, ["7 is not a mask"]),
        ([], ["[] is not a mask"]),
    ],
    ids=str,
)
def test_errors_say_what_was_given_and_what_is_allowed(spec, parts):
    with pytest.raises(PolicyError) as caught:
        parse_mask(spec, where="attribute 'age'")
    message = str(caught.value)
    assert message.startswith("attribute 'age': ")
    for part in parts:
        assert part in message


def test_construction_validates_too():
    with pytest.raises(PolicyError, match="'width' is 0"):
        Bucketize(0)
    with pytest.raises(PolicyError, match="two or more masks"):
        Compose((Identity(), "suppress"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Bucketize(1).width = 2


@pytest.mark.parametrize(
    ("mask", "kind", "part"),
    [
        (Bucketize(10), Kind.TEXT, "works on: integer, number"),
        (Blur(keep=1), Kind.DATE, "works on: integer, text"),
        (Truncate("day"), Kind.INTEGER, "works on: date"),
        (Truncate("day"), Kind.TEXT, "save the table as CSV"),
        (TopCode(0.5), Kind.INTEGER, "Give a whole number"),
        (Compose((Bucketize(10), TopCode(5))), Kind.INTEGER, "does not fit a column of text"),
    ],
    ids=str,
)
def test_check_refuses_columns_that_do_not_fit(mask, kind, part):
    with pytest.raises(PolicyError) as caught:
        mask.check(kind, "age")
    assert "'age'" in str(caught.value)
    assert part in str(caught.value)


def test_compose_applies_and_fits_in_order():
    mask = Compose((TopCode(90), Bucketize(10)))
    assert masked(mask, [17, 95, None], pa.int64()) == ["[10, 20[", "[90, inf[", None]
    data = counted(Kind.INTEGER, [1, 2, 11, 12, 13, 21, None], pa.int64())
    fitted = Compose((Bucketize(10, 0, "lower"), KeepFrequent(1), Blur(keep=1))).fit(data)
    assert fitted.masks[1].values == (10,)
    assert fitted.fitted
    assert masked(fitted, [12, 21, None], pa.int64()) == ["1*", "o*", None]
    assert fitted.fit(data) is fitted
    with pytest.raises(InternalError, match="keep_frequent"):
        masked(Compose((Identity(), KeepFrequent(1))), ["a"], pa.string())


@pytest.mark.parametrize(
    "dtype", [pa.int8(), pa.int64(), pa.uint16(), pa.float64(), pa.decimal128(9, 2)]
)
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((TopCode(10), Bucketize(2)), ["[4, 6[", "[8, 10[", "[10, inf[", "[10, inf["]),
        ((TopCode(9), Bucketize(2)), ["[4, 6[", "[8, inf[", "[8, inf[", "[8, inf["]),
        ((BottomCode(9), Bucketize(2)), ["]-inf, 10[", "]-inf, 10[", "[10, 12[", "[38, 40["]),
        ((BottomCode(8), TopCode(9), Bucketize(10)), ["]-inf, inf["] * 4),
        ((TopCode(10), Quantiles(3, (5, 20))), ["]-inf, 5[", *["[5, inf["] * 3]),
        ((TopCode(10), Bucketize(2, 0, "lower")), [4, 8, 10, 10]),
        ((TopCode(1000), Bucketize(2)), ["[4, 6[", "[8, 10[", "[10, 12[", "[38, 40["]),
        ((Compose((Identity(), TopCode(10))), Bucketize(2), Blur(keep=3)), ["[4,*", "[8,*"]),
    ],
    ids=str,
)
def test_intervals_after_a_bound_contain_the_number(parts, expected, dtype):
    mask = Compose(parts)
    shown = masked(mask, [4, 9, 10, 38], dtype)
    assert shown[: len(expected)] == expected
    assert all(mask.shows(text) is not False for text in shown if isinstance(text, str))


def test_masks_after_intervals_learn_them_as_they_are_shown():
    mask = Compose((TopCode(10), Bucketize(2), KeepFrequent(1)))
    fitted = mask.fit(counted(Kind.INTEGER, [3, 10, 20, 30], pa.int64()))
    assert masked(fitted, [3, 10, 38], pa.int64()) == ["other", "[10, inf[", "[10, inf["]


@pytest.mark.parametrize(
    "moving", [Round(step=5), EraseDigits(1), Bucketize(7, 0, "lower")], ids=str
)
def test_intervals_of_moved_numbers_are_refused(moving):
    with pytest.raises(PolicyError, match=f"Leave out '{moving.name}'"):
        Compose((moving, Bucketize(10))).check(Kind.NUMBER, "age")
    Compose((Bucketize(10), KeepFrequent(2))).check(Kind.NUMBER, "age")


def test_compose_knows_what_all_of_its_masks_know():
    import ibis

    from aegis.sources import embedded

    mask = Compose((Level(1, TREE), Group({"x": ["g"]}, "error")))
    table = ibis.memtable(pa.table({"v": pa.array(["a", "b", "z", None])}))
    found = embedded().to_pyarrow(table.select(k=mask.known(table.v)))
    assert found["k"].to_pylist() == [True, False, False, True]
    assert Compose((Identity(), Suppress())).known(table.v) is None


def test_importing_masks_imports_no_heavy_library():
    code = (
        "import sys, aegis.masks;"
        "print(*(name for name in ('pandas', 'sklearn', 'altair') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""

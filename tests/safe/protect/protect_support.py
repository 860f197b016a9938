"""A small table with a unique value in every part of it, and its policy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

CANARY = "zxq-canary"
POLICY = """
version: 1
label: {column: income, classes: [high, low]}
privacy: {k: 3, suppression: 0.1}
attributes:
  age: {role: quasi-identifier, masks: [{bucketize: {width: 5}}, {bucketize: {width: 20}}, suppress]}
  city: {role: quasi-identifier, masks: [identity, {keep_frequent: {count: 2}}, suppress]}
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  hours: {role: feature, masks: [{bucketize: {width: 10}}, {quantiles: {count: 3}}]}
"""


def make_table(rows=600, seed=0, canary=False):
    """Rows in which age and city say most of the label, hours little, sex nothing."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 70, rows)
    city = random.choice(["aa", "bb", "cc", "dd"], rows, p=[0.4, 0.3, 0.2, 0.1])
    sex = random.choice(["f", "m"], rows)
    hours = np.clip(random.normal(38, 9, rows).astype(int) + age // 15, 1, 90)
    strength = 0.1 + 0.4 * (age > 45) + 0.3 * (city == "aa")
    label = np.where(random.random(rows) < strength, "high", "low")
    columns = {
        "age": pa.array(age, pa.int64()),
        "city": pa.array(city.tolist()),
        "sex": pa.array(sex.tolist()),
        "hours": pa.array(hours, pa.int64()),
        "income": pa.array(label.tolist()),
    }
    if canary:
        cities = columns["city"].to_pylist()
        cities[0] = CANARY
        ages = columns["age"].to_pylist()
        ages[0] = 987_654
        columns |= {"city": pa.array(cities), "age": pa.array(ages, pa.int64())}
    return pa.table(columns)

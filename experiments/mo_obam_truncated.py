"""Does MO-OBAM's paper round or truncate the numbers of a centroid?

Its example (Table II(b)) shows ages 38, 36, 39 as 37 and visits 5, 8, 7 as 6: means cut off, not
rounded. The k-anonymity of Tables IV and V (MDAV) counted both ways: classes of equal released values,
loss on unscaled numbers, records at risk.

    python experiments/mo_obam_truncated.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.anonymizers import ANONYMIZERS, encode_for
from aegis.anonymizers.groups import centroid
from aegis.policy import AttributeKind
from common import write_csv
from mo_obam import LABEL
from records import adult, german, policy_of

NAME = "mo_obam_truncated"
KS = (5, 10, 15, 20)


def figures(name: str, table: pa.Table, k: int, *, truncated: bool) -> dict[str, Any]:
    """Return classes, unscaled loss and records at risk of MDAV with whole-number centroids."""
    records = encode_for(table, policy_of(name, table, LABEL[name]))
    method = ANONYMIZERS.get("mdav")
    groups = method.group(records, method.configure(k=k)).groups
    shown: list[npt.NDArray[np.float64]] = []
    lost = deviation = 0.0
    for attribute in records.attributes:
        middle = centroid(attribute, groups, rounded=False)
        if attribute.kind is AttributeKind.NUMERIC:
            values = attribute.numbers[attribute.codes]
            means = np.round(middle[groups.of], 9)  # 37 is not to become 36.999... and 36
            whole = np.floor(means) if truncated else np.round(means)
            lost += float(((values - whole) ** 2).sum())
            deviation += float(((values - values.mean()) ** 2).sum())
            shown.append(whole)
        else:
            own = middle[groups.of]
            lost += float((own != attribute.codes).sum())
            deviation += float((attribute.codes != np.bincount(attribute.codes).argmax()).sum())
            shown.append(own.astype(np.float64))
    sizes = np.unique(np.column_stack(shown), axis=0, return_counts=True)[1]
    below = {"at_risk_0.05": 20, "at_risk_0.075": 14, "at_risk_0.1": 10}
    return {
        "data": name,
        "k": k,
        "centroids": "truncated" if truncated else "rounded",
        "classes": len(sizes),
        "il": lost / deviation,
        **{risk: int(sizes[sizes < size].sum()) for risk, size in below.items()},
    }


def main() -> None:
    """Group, count both ways and write."""
    rows = []
    for name, table in (("German", german()), ("Adult", adult())):
        for k in KS:
            for truncated in (False, True):
                rows.append(figures(name, table, k, truncated=truncated))
                print(rows[-1], flush=True)
    write_csv(NAME, rows)


if __name__ == "__main__":
    main()

"""Say in words which field of a certificate a path in its JSON names."""

from __future__ import annotations

import re

FIELDS = {
    ".unmasked and .kept": "its utility unmasked and the percentage kept",
    "aegis": "version of Aegis",
    "after": "earlier releases",
    "anonymizer": "record-level method",
    "anonymizer.claims.k": "rows of the smallest class that the method promises",
    "catalog": "whether somebody has revoked the release",
    "catalog.request": "number of the request",
    "catalog.url": "address of the catalog",
    "certificate": "version of the certificate",
    "configuration": "masks",
    "configuration.masks.*": "mask of {}",
    "configuration.name": "name of the configuration",
    "created": "time of the certificate",
    "digest": "digest of the certificate",
    "dropped_columns": "columns left out",
    "dropped_columns: *": "column {}",
    "groups": "number of groups",
    "information_loss": "information loss",
    "input": "rows of the original table",
    "input.digest": "digest of the original table",
    "input.hmac_sha256": "digest of the original table",
    "input.origin": "name of the original table",
    "input.rows": "rows of the original table",
    "input.sha256": "digest of the original table",
    "learnt_bounds": "cut points that masks learnt",
    "noised_quasi_identifiers": "quasi-identifiers with noise",
    "output": "released file",
    "output.file": "name of the released file",
    "output.rows": "rows of the released file",
    "output.sha256": "digest of the released file",
    "output.text": "columns of texts",
    "persons": "number of persons",
    "policy": "policy",
    "policy.attributes.*": "column {} of the policy",
    "policy.sha256": "digest of the policy",
    "privacy": "privacy",
    "privacy.alpha_k.*.alpha": "largest share of a value of {} in a class",
    "privacy.alpha_k.*.k": "size of the smallest class",
    "privacy.at_risk.*": "rows at risk above {}",
    "privacy.beta_likeness.*.*": "beta of {} ({})",
    "privacy.class_size_histogram": "rows by size of their class",
    "privacy.classes": "number of classes",
    "privacy.delta_disclosure.*.*": "delta of {} ({})",
    "privacy.differential_privacy": "differential privacy",
    "privacy.homogeneous_rows.*": "rows in classes with a single value of {}",
    "privacy.homogeneous_rows_any": "rows in classes with a single value of a sensitive column",
    "privacy.k": "size of the smallest class",
    "privacy.l_diversity.*.distinct": "fewest values of {} in a class",
    "privacy.l_diversity.*.entropy": "l of {}, by entropy",
    "privacy.l_diversity.*.recursive_c.*": "recursive diversity of {} for l = {}",
    "privacy.mean_class_size": "mean size of a class",
    "privacy.outside": "risks outside the quasi-identifiers",
    "privacy.outside.implied": "released columns that give away masked ones",
    "privacy.outside.near_keys": "columns that are nearly unique in each row",
    "privacy.outside.singling": "columns that single out rows",
    "privacy.outside.unique_rows": "rows unique in all columns",
    "privacy.passed": "whether the rule is met",
    "privacy.quasi_identifiers": "quasi-identifiers",
    "privacy.risk.*.average": "average risk, {} attack",
    "privacy.risk.*.maximum": "largest risk, {} attack",
    "privacy.rule": "privacy rule",
    "privacy.sensitive": "sensitive columns",
    "privacy.t_closeness.*.*": "t of {} ({} distance)",
    "privacy.t_closeness.*.hierarchical": "hierarchical t-closeness",
    "privacy.uniques": "rows that are alone in their class",
    "privacy.violations": "broken parts of the rule",
    "rule_override": "rule that replaces the owner's",
    "seeded_noise": "columns whose noise has a seed",
    "signature": "signature",
    "signature.key": "key of the signature",
    "signature.value": "signed content",
    "suppressed_persons": "persons suppressed",
    "suppressed_rows": "rows suppressed",
    "unseen_rows": "values that a mask did not know",
    "utility": "utility",
    "utility.columns.*.weight": "weight of each column",
    "utility.columns.*.*": "utility of column {}: {}",
    "utility.kept": "percentage of the utility kept",
    "utility.labels.*.*": "utility of label {}: {}",
    "utility.leaks": "columns that explain most of the label",
    "utility.lost_classes": "label classes of which no row is left",
    "utility.measure": "measure of the utility",
    "utility.one_row": "share of the label's variance that one row causes",
    "utility.reference": "utility of the original table",
    "utility.reference_name": "table that the utility is compared with",
    "utility.reference_rmse": "error of predictions from the original table",
    "utility.released": "utility of the release",
    "utility.rmse": "error of predictions from the release",
    "utility.rows": "rows on which the utility was measured",
    "utility.stderr": "sampling error of the utility",
    "utility.value": "utility of the release",
    "weight": "sums of the weights",
}
"""Words for fields of a certificate. A `*` stands for a name in the path, and `{}` for it in the words.
"""
OF_LABELS = " of each label"


def field_in_words(path: str) -> str:
    """Return words for a field of a certificate.

    Parts of a field without words follow its words.

    Examples
    --------
    >>> field_in_words("privacy.at_risk.0.2")
    'rows at risk above 0.2'
    >>> field_in_words("privacy.outside.singling.unique_rows")
    'columns that single out rows: unique rows'
    """
    if path.endswith(OF_LABELS):
        return f"{field_in_words('utility.' + path.removesuffix(OF_LABELS))} for each label"
    if path in FIELDS:
        return FIELDS[path]
    for field, words in FIELDS.items():
        pattern = re.escape(field).replace(r"\*", "(.+)")
        if "*" in field and (names := re.fullmatch(pattern, path)):
            column, *figure = names.groups()
            return words.format(column, *(text.replace("_", " ") for text in figure))
    parent, dot, part = path.rpartition(".")
    if not dot:
        return path.replace("_", " ")
    return f"{field_in_words(parent)}: {part.replace('_', ' ')}"

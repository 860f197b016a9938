"""Anonymisation methods that work on single records: microaggregation, clustering, Mondrian,
MO-OBAM, local suppression, swapping, sampling and the hybrid scheme.
"""

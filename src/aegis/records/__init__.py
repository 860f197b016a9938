"""Record-level methods: microaggregation, clustering, Mondrian, MO-OBAM, sampling, the hybrid scheme."""

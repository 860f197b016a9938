"""The method MO-OBAM (Wei et al.): its options, its local search and its clusters."""

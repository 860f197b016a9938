"""MO-OBAM: the method, its local search, and its clusters."""

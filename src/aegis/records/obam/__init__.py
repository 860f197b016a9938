"""MO-OBAM: the method, its local search, and the clusters that it changes."""

"""How well `aegis init` reads columns: public tables, labelled by hand, against its proposals."""

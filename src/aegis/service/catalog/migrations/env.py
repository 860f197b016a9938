"""Run the migrations on the connection that `Database` provides."""

from alembic import context

from aegis.service.catalog.records import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()

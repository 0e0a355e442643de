"""Called by Alembic: migrates the open connection of `uflip.site.database` to the newest schema."""

from alembic import context

from uflip.site.tables import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()

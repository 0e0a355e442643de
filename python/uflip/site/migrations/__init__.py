"""How the schema of a site came to be, one step a file; Alembic carries them out."""

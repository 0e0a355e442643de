"""Schema migrations, in order; each names the previous one."""

"""Accounts and their tokens: 256 random bits that are shown once and stored as a digest."""

import hashlib
import re
import secrets

from sqlalchemy import select
from sqlalchemy.orm import Session

from uflip.errors import UsageError, unknown_name
from uflip.results.initial_manifest import utc_now
from uflip.site.tables import ROLES, Account, Audit

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,98}")
PREFIX = "uflip_"
"""Prefix of tokens, by which scanners for secrets recognize them."""


def new_token(session: Session, name: str, role: str) -> str:
    """Create an account, or a new token for a revoked one; return the token (not stored)."""
    check_new(name, role)
    token = PREFIX + secrets.token_urlsafe(32)
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        account = Account(name=name, created_utc=utc_now())
        session.add(account)
    elif account.revoked_utc is None:
        raise UsageError(
            "The account exists",
            where="NAME",
            got=name,
            action=f"revoke its token with `uflip site token FOLDER {name} --revoke`, and ask "
            "for a new one; or take another name",
        )
    account.role, account.token_digest, account.revoked_utc = role, _digest(token), None
    log_action(session, name, "token", role)
    return token


def check_new(name: str, role: str) -> None:
    """Refuse an invalid account before anything is created."""
    if role not in ROLES:
        raise unknown_name("role", role, ROLES, where="--role")
    if not NAME.fullmatch(name):
        raise UsageError(
            "The account name is invalid",
            where="NAME",
            got=repr(name[:100]),
            allowed="letters, digits, blanks and . _ @ -",
            action="choose another name",
        )


def revoke(session: Session, name: str) -> None:
    """Revoke the token of an account; its results stay."""
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        names = list(session.scalars(select(Account.name)))
        raise unknown_name("account", name, names, where="NAME")
    if account.revoked_utc is None:
        account.revoked_utc = utc_now()
        log_action(session, name, "revoke", account.role)


def account_of(session: Session, token: str) -> Account | None:
    """Return the account of a token; None if it is unknown or revoked."""
    owner = session.scalar(select(Account).where(Account.token_digest == _digest(token)))
    return None if owner is None or owner.revoked_utc is not None else owner


def has_role(account: Account | None, role: str) -> bool:
    """Return whether an account has the rights of a role."""
    return account is not None and ROLES.index(account.role) >= ROLES.index(role)


def log_action(session: Session, account: str, action: str, subject: str) -> None:
    """Record an action of an account in the log."""
    session.add(Audit(at_utc=utc_now(), account=account, action=action, what=subject[:200]))


def _digest(token: str) -> str:
    # Random bits cannot be guessed as a password can: no slow hash is needed.
    return hashlib.sha256(token.encode()).hexdigest()

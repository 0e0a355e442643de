"""Accounts and their tokens: 256 random bits that are shown once and stored as a digest."""

import hashlib
import re
import secrets
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from uflip.errors import UsageError, unknown_name
from uflip.results.initial_manifest import utc_now
from uflip.site.tables import ROLES, Account, Audit

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,98}")
PREFIX = "uflip_"
"""Prefix of tokens, by which scanners for secrets recognize them."""


def new_token(session: Session, name: str, role: str, *, valid_days: int | None = None) -> str:
    """Create an account, or a new token for a revoked one; return the token (not stored).

    Without `valid_days` the token does not expire.
    """
    check_new(name, role)
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        account = Account(name=name, created_utc=utc_now())
        session.add(account)
    elif account.revoked_utc is None:
        raise UsageError(
            "The account exists",
            where="NAME",
            got=name,
            action=f"replace its token with `uflip site token FOLDER {name} --rotate`, or take "
            "another name",
        )
    account.role = role
    return _give_token(session, account, "token", valid_days)


def rotate(session: Session, name: str, *, valid_days: int | None = None) -> str:
    """Replace the token of an account; the old one is invalid at once. Return the new one."""
    return _give_token(session, _account(session, name), "rotate", valid_days)


def _give_token(session: Session, account: Account, action: str, valid_days: int | None) -> str:
    token = PREFIX + secrets.token_urlsafe(32)
    account.token_digest, account.revoked_utc = _digest(token), None
    account.expires_utc = None
    if valid_days is not None:
        account.expires_utc = utc_now(after=timedelta(days=valid_days))
    log_action(session, account.name, action, account.role)
    return token


def _account(session: Session, name: str) -> Account:
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        names = list(session.scalars(select(Account.name)))
        raise unknown_name("account", name, names, where="NAME")
    return account


def status_of(account: Account) -> str:
    """Return "valid", "expired" or "revoked"."""
    if account.revoked_utc is not None:
        return "revoked"
    expires = account.expires_utc
    return "expired" if expires is not None and expires <= utc_now() else "valid"


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
    account = _account(session, name)
    if account.revoked_utc is None:
        account.revoked_utc = utc_now()
        log_action(session, name, "revoke", account.role)


def account_of(session: Session, token: str) -> Account | None:
    """Return the account of a token; None if it is unknown, expired or revoked."""
    owner = session.scalar(select(Account).where(Account.token_digest == _digest(token)))
    return owner if owner is not None and status_of(owner) == "valid" else None


def has_role(account: Account | None, role: str) -> bool:
    """Return whether an account has the rights of a role."""
    return account is not None and ROLES.index(account.role) >= ROLES.index(role)


def log_action(session: Session, account: str, action: str, subject: str) -> None:
    """Record an action of an account in the log."""
    session.add(Audit(at_utc=utc_now(), account=account, action=action, what=subject[:200]))


def _digest(token: str) -> str:
    # Random bits cannot be guessed as a password can: no slow hash is needed.
    return hashlib.sha256(token.encode()).hexdigest()

//! An error has four parts: what failed, where, the value got and the values allowed, what to do.
//!
//! The `kind` is the class that callers match on; the command line turns it into an exit code.

use std::fmt;

/// Short for a result with our error.
pub type Result<T> = std::result::Result<T, Error>;

/// The class of an error. Adding a message adds no class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// A name, number or specification that cannot be meant: nothing was touched.
    Usage,
    /// Refused for safety's sake: nothing was touched.
    Refused,
    /// The device, file or file system did not do what was asked.
    Device,
    /// A result on disk exists, is damaged or of another version.
    Results,
    /// Something optional is missing on this machine.
    Unavailable,
    /// The user stopped it.
    Interrupted,
    /// A mistake in uflip itself.
    Internal,
}

impl ErrorKind {
    /// The name by which Python knows the class.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Usage => "usage",
            ErrorKind::Refused => "refused",
            ErrorKind::Device => "device",
            ErrorKind::Results => "results",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Internal => "internal",
        }
    }
}

/// What failed, where, what was got, what is allowed, what to do. Parts may be empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(Box<Parts>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Parts {
    kind: ErrorKind,
    what: String,
    place: String,
    got: String,
    allowed: String,
    action: String,
}

impl Error {
    /// An error of `kind` that says what failed.
    #[must_use]
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Error {
        Error(Box::new(Parts {
            kind,
            what: what.into(),
            place: String::new(),
            got: String::new(),
            allowed: String::new(),
            action: String::new(),
        }))
    }

    /// [`ErrorKind::Usage`].
    #[must_use]
    pub fn usage(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, what)
    }

    /// [`ErrorKind::Device`].
    #[must_use]
    pub fn device(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Device, what)
    }

    /// An operating-system error during `what` at `place`. Who knows more says what to do.
    #[must_use]
    pub fn os(what: impl Into<String>, place: impl Into<String>, error: &std::io::Error) -> Error {
        Error::device(what)
            .at(place)
            .got(error.to_string())
            .action("check that it is still there, and what the kernel says of it (dmesg)")
    }

    /// An operating-system error while a file is written that somebody asked for: [`ErrorKind::Results`].
    #[must_use]
    pub fn unwritten(
        what: impl Into<String>,
        place: impl Into<String>,
        error: impl std::fmt::Display,
    ) -> Error {
        Error::new(ErrorKind::Results, what).at(place).got(error.to_string()).action(
            "check that the folder exists, and that its file system is not full and may be written",
        )
    }

    /// An unknown name: an error that lists the known ones.
    #[must_use]
    pub fn unknown(thing: &str, got: &str, known: &[&str]) -> Error {
        Error::usage(format!("Unknown {thing}"))
            .got(format!("'{got}'"))
            .allowed(known.join(", "))
            .action("use one of the allowed names")
    }

    /// Where it failed.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Error {
        self.0.place = place.into();
        self
    }

    /// The value that was got.
    #[must_use]
    pub fn got(mut self, got: impl Into<String>) -> Error {
        self.0.got = got.into();
        self
    }

    /// The values that are allowed.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Error {
        self.0.allowed = allowed.into();
        self
    }

    /// What a reader of plain data (serde) says is wrong: the names that it expected are those that are
    /// allowed. Where it read JSON, that was written by a program: its lines are nobody's lines.
    #[must_use]
    pub fn misread(self, message: &str) -> Error {
        let message = message.trim();
        let message = message.rsplit_once(" at line ").map_or(message, |(before, _)| before);
        let (got, names) = match message.split_once(", expected ") {
            Some((got, expected)) if expected.contains('`') => {
                (got, expected.split('`').skip(1).step_by(2).collect())
            }
            _ => (message, vec![]),
        };
        let error = self.got(got.replace(" field ", " key "));
        if names.is_empty() { error } else { error.allowed(names.join(", ")) }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Error {
        self.0.action = action.into();
        self
    }

    /// The class.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// `(what, where, got, allowed, action)`, for a caller that formats it itself.
    #[must_use]
    pub fn parts(&self) -> (&str, &str, &str, &str, &str) {
        let Parts { what, place, got, allowed, action, .. } = &*self.0;
        (what, place, got, allowed, action)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, place, got, allowed, action) = self.parts();
        write!(f, "{what}")?;
        let labelled = [("where", place), ("got", got), ("allowed", allowed), ("do", action)];
        for (label, text) in labelled.into_iter().filter(|(_, text)| !text.is_empty()) {
            write!(f, "; {label}: {text}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serde_expected_is_what_is_allowed() {
        let parts = |message: &str| {
            let error = Error::usage("Bad").misread(message);
            let (_, _, got, allowed, _) = error.parts();
            (got.to_owned(), allowed.to_owned())
        };
        let pair = |got: &str, allowed: &str| (got.to_owned(), allowed.to_owned());
        let unknown = "unknown field `x`, expected one of `a`, `b` at line 1 column 6";
        assert_eq!(parts(unknown), pair("unknown key `x`", "a, b"));
        assert_eq!(parts("unknown field `x`, expected `a`\n"), pair("unknown key `x`", "a"));
        assert_eq!(parts("missing field `a`"), pair("missing key `a`", ""));
        let kind = "invalid type: string \"x\", expected u32";
        assert_eq!(parts(kind), pair(kind, ""));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Error::unknown("location", "randon", &["sequential", "random"]);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(
            error.to_string(),
            "Unknown location; got: 'randon'; allowed: sequential, random; \
             do: use one of the allowed names"
        );
    }
}

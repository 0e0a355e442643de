//! Where clients come in: a UNIX socket that nobody else may use, or TCP on this machine alone.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, listen,
    socket_with, sockopt,
};
use uflip_core::{Error, ErrorKind, Result};

/// How many may wait to be let in.
const BACKLOG: i32 = 128;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A socket that listens. A file that was made for it is removed with it, and no other.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    made: Option<Made>,
    address: String,
}

/// The file of a socket: its name, and by which it is known for ours.
#[derive(Debug)]
struct Made {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Listener {
    /// Listen at `path`, where nothing is yet, for this user alone.
    ///
    /// # Errors
    /// Something is there; the name is too long for a socket; the system refuses.
    pub fn unix(path: &Path) -> Result<Listener> {
        let place = || path.display().to_string();
        let failed = |error: rustix::io::Errno| {
            Error::os("The socket cannot be made", place(), &error.into())
                .action("name a new file in a folder that may be written")
        };
        let address = SocketAddrUnix::new(path).map_err(|_| {
            Error::usage("The name of the socket is too long")
                .at(place())
                .got(format!("{} bytes", path.as_os_str().len()))
                .allowed("up to 107 bytes")
                .action("name it from a folder that is nearer")
        })?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None);
        let socket = socket.map_err(failed)?;
        // The file gets the mode of the socket, so that at no time others may connect.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        bind(&socket, &address).map_err(|error| match error {
            rustix::io::Errno::ADDRINUSE => Error::new(ErrorKind::Refused, "Something is there")
                .at(place())
                .allowed("a name that is free")
                .action("name another socket; remove this one if its server is gone"),
            other => failed(other),
        })?;
        let known = std::fs::symlink_metadata(path);
        let known = known.map_err(|error| Error::os("The socket is gone", place(), &error))?;
        let (device, inode) = (known.dev(), known.ino());
        let made = Some(Made { path: path.to_owned(), device, inode });
        let address = place();
        let listener = Listener { socket, made, address };
        listen(&listener.socket, BACKLOG).map_err(failed)?;
        Ok(listener)
    }

    /// Listen at a port of `address`; 0 is any that is free.
    ///
    /// # Errors
    /// It is in use, or the system refuses.
    pub fn tcp(address: SocketAddr) -> Result<Listener> {
        let failed = |error: rustix::io::Errno| {
            Error::os("The port cannot be listened at", address.to_string(), &error.into())
                .action("name another port; 0 takes one that is free")
        };
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = socket_with(family, SocketType::STREAM, FLAGS, None).map_err(failed)?;
        sockopt::set_socket_reuseaddr(&socket, true).map_err(failed)?;
        bind(&socket, &address).map_err(failed)?;
        listen(&socket, BACKLOG).map_err(failed)?;
        let bound = getsockname(&socket).and_then(SocketAddr::try_from).map_err(failed)?;
        Ok(Listener { socket, made: None, address: bound.to_string() })
    }

    /// What a client connects to: a path, or an address and a port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it is a file.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        self.made.is_some()
    }

    /// Let the next client in; `None` where none waits.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn accept(&self) -> std::io::Result<Option<OwnedFd>> {
        match accept_with(&self.socket, FLAGS) {
            Ok(client) => {
                if self.made.is_none() {
                    // Small replies are not kept back.
                    let _ = sockopt::set_tcp_nodelay(&client, true);
                }
                Ok(Some(client))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::CONNABORTED) => Ok(None),
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(Made { path, device, inode }) = &self.made else { return };
        let there = std::fs::symlink_metadata(path);
        if there.is_ok_and(|there| there.dev() == *device && there.ino() == *inode) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_for_its_user_and_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = Listener::unix(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(Listener::unix(&path).unwrap_err().to_string().contains("Something is there"));
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn what_took_its_place_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = Listener::unix(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "not ours").unwrap();
        drop(listener);
        assert_eq!(std::fs::read(&path).unwrap(), b"not ours");
    }

    #[test]
    fn a_name_that_no_socket_can_have_is_an_error() {
        let long = PathBuf::from("/tmp").join("x".repeat(200));
        assert!(Listener::unix(&long).unwrap_err().to_string().contains("107"));
    }
}

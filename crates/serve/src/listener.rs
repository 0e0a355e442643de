//! Listening sockets: a UNIX socket for the present user only, or TCP.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
    sockopt,
};
use uflip_core::{Error, ErrorKind, Result};

/// The backlog of connections not yet accepted.
const BACKLOG: i32 = 128;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A listening socket. A socket file is removed with it, unless another file has taken its place.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    socket_file: Option<SocketFile>,
    address: String,
}

/// The file of a socket: its path and its identity.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Listener {
    /// Listen at the new path `path`, for this user only.
    ///
    /// # Errors
    /// If the path exists or is too long for a socket, or the system refuses.
    pub fn unix(path: &Path) -> Result<Listener> {
        let location = || path.display().to_string();
        let failed = |error: Errno| {
            Error::os("The socket cannot be created", location(), &error.into())
                .action("name a new file in a folder that may be written")
        };
        let address = SocketAddrUnix::new(path).map_err(|_| {
            Error::usage("The path of the socket is too long")
                .at(location())
                .got(format!("{} bytes", path.as_os_str().len()))
                .allowed("up to 107 bytes")
                .action("use a relative path, or a folder with a shorter path")
        })?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None);
        let socket = socket.map_err(failed)?;
        // The file inherits the socket's mode, so others can never connect.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        bind(&socket, &address).map_err(|error| match error {
            Errno::ADDRINUSE => Error::new(ErrorKind::Refused, "The path of the socket exists")
                .at(location())
                .allowed("an unused path")
                .action("name another path; remove this one if its server has ended"),
            other => failed(other),
        })?;
        let metadata = std::fs::symlink_metadata(path);
        let metadata = metadata
            .map_err(|error| Error::os("The socket file was removed", location(), &error))?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        let socket_file = Some(SocketFile { path: path.to_owned(), device, inode });
        let address = location();
        let listener = Listener { socket, socket_file, address };
        listen(&listener.socket, BACKLOG).map_err(failed)?;
        Ok(listener)
    }

    /// Listen at a port of `address`; 0 selects a free one.
    ///
    /// # Errors
    /// If the port is in use, or the system refuses.
    pub fn tcp(address: SocketAddr) -> Result<Listener> {
        let listen = || {
            let socket = TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?.to_string();
            Ok(Listener { socket: socket.into(), socket_file: None, address })
        };
        listen().map_err(|error: std::io::Error| {
            Error::os("Cannot listen at this port", address.to_string(), &error)
                .action("name another port; 0 selects a free one")
        })
    }

    /// Return the address for clients: a path, or an address and a port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Return whether it is a UNIX socket.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        self.socket_file.is_some()
    }

    /// Accept the next client; `None` if no client waits.
    ///
    /// # Errors
    /// If the system is out of descriptors or memory.
    pub fn accept(&self) -> std::io::Result<Option<OwnedFd>> {
        match accept_with(&self.socket, FLAGS) {
            Ok(client) => {
                if self.socket_file.is_none() {
                    // Send small replies without delay.
                    let _ = sockopt::set_tcp_nodelay(&client, true);
                }
                Ok(Some(client))
            }
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
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
        let Some(SocketFile { path, device, inode }) = &self.socket_file else { return };
        let metadata = std::fs::symlink_metadata(path);
        if metadata.is_ok_and(|metadata| metadata.dev() == *device && metadata.ino() == *inode) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_file_is_private_and_removed_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = Listener::unix(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(
            Listener::unix(&path)
                .unwrap_err()
                .to_string()
                .contains("The path of the socket exists")
        );
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn replacement_of_the_socket_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = Listener::unix(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "not ours").unwrap();
        drop(listener);
        assert_eq!(std::fs::read(&path).unwrap(), b"not ours");
    }

    #[test]
    fn overlong_socket_path_is_an_error() {
        let long = PathBuf::from("/tmp").join("x".repeat(200));
        assert!(Listener::unix(&long).unwrap_err().to_string().contains("107"));
    }
}

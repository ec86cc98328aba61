//! Where the sockets are.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Sockets of all daemons of a host.
pub const DIRECTORY: &str = "/run/v2x";

/// How the names of sockets end.
const SUFFIX: &str = ".sock";

/// How those end on which something can be changed.
const RW_SUFFIX: &str = ".rw.sock";

/// The longest path of a socket that leaves room for that of the other one: the kernel takes 107
/// bytes.
pub const PATH_MAX: usize = 100;

/// The socket of the daemon with this TAP.
pub fn of(tap_name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{tap_name}{SUFFIX}"))
}

/// The read-write socket beside a read-only one: `obu0.rw.sock` beside `obu0.sock`.
pub fn read_write(read_only: &Path) -> PathBuf {
    let mut name = OsString::from(read_only.as_os_str());
    if let Some(bare) = read_only.to_str().and_then(|text| text.strip_suffix(SUFFIX)) {
        name = bare.into();
    }
    name.push(RW_SUFFIX);
    name.into()
}

/// All read-only sockets in a directory, by name. None if there is no such directory.
///
/// # Errors
/// The directory cannot be read.
pub fn all_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(SUFFIX) && !name.ends_with(RW_SUFFIX) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_read_write_socket_is_beside_the_other() {
        assert_eq!(of("obu0"), Path::new("/run/v2x/obu0.sock"));
        assert_eq!(read_write(&of("obu0")), Path::new("/run/v2x/obu0.rw.sock"));
        assert_eq!(read_write(Path::new("/tmp/x")), Path::new("/tmp/x.rw.sock"));
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_sockets() {
        assert_eq!(all_in(Path::new("/nonexistent/v2x")).ok(), Some(Vec::new()));
    }
}

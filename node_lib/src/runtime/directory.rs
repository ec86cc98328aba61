//! Directories in which the daemon is to make files: asked about before anything is made.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// The directory a file of this path is in.
pub fn of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Tries whether a new file can be made in this directory. Nothing of it stays there.
///
/// To ask for permission is not enough: the administrator has it in `/proc` as well, where nobody
/// can make a file.
pub fn takes_files(directory: &Path) -> io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR) {
        // Not every file system has files without a name.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => takes_named_files(directory),
        tried => tried.map(drop).map_err(io::Error::from),
    }
}

fn takes_named_files(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".v2x-check-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_its_parent_or_here() {
        for (path, directory) in [("/run/v2x/boots", "/run/v2x"), ("boots", "."), ("/", ".")] {
            assert_eq!(of(Path::new(path)), Path::new(directory), "{path}");
        }
    }

    #[test]
    fn what_takes_no_files_is_found_and_nothing_is_left_behind() {
        let name = format!("v2x-directory-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let tries: [fn(&Path) -> io::Result<()>; 2] = [takes_files, takes_named_files];
        for takes in tries {
            takes(&directory).unwrap();
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
            takes(&directory.join("none")).unwrap_err();
            takes(Path::new("/dev/null")).unwrap_err();
            takes(Path::new("/proc")).unwrap_err();
        }
        fs::remove_dir(&directory).unwrap();
    }
}

//! The boot count: higher with every start, so that a restarted node is believed over its own past.
//! What is read, waited for and written; the arithmetic is that of [`boot`].

use std::error::Error as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::directory;
use crate::start::boot::{self, Counted};
use crate::{Boot, device};

/// Longest file looked at: a number of 32 bits has at most ten digits.
const FILE_LEN_MAX: u64 = 64;

/// The state file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// It could not be read or written.
    #[error("state file {}: cannot {operation}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// What was wrong.
        source: io::Error,
    },
    /// There is something else in it.
    #[error(
        "state file {}: expected one line with the number of the last start and found {found:?}; \
         if nothing else uses the file, remove it", path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its beginning.
        found: String,
    },
    /// The number cannot grow any more.
    #[error("state file {}: the count has reached its end; remove the file", path.display())]
    Exhausted {
        /// The file.
        path: PathBuf,
    },
}

impl BootError {
    /// The disk takes nothing any more, whoever asks.
    fn is_of_the_disk(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), ReadOnlyFilesystem | StorageFull | QuotaExceeded)
    }
}

/// The boot count of a start.
#[derive(Debug)]
pub struct StartCount {
    /// The count.
    pub boot: Boot,
    /// Why the state file does not have it: the disk takes nothing, and the count is the clock's.
    pub unsaved: Option<BootError>,
}

impl StartCount {
    /// The same in one line, with its cause.
    pub fn why_unsaved(&self) -> Option<String> {
        let error = self.unsaved.as_ref()?;
        let cause = error.source().map(|cause| format!(": {cause}"));
        Some(format!("{error}{}", cause.unwrap_or_default()))
    }
}

impl From<Boot> for StartCount {
    fn from(boot: Boot) -> Self {
        Self { boot, unsaved: None }
    }
}

/// Whether the clock tells the time: one that was never set stands near 1970.
pub fn clock_is_set() -> bool {
    wall_clock() >= boot::EPOCH
}

pub(super) fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time of day, since 1970, or what tells one start from the next in its place.
fn time_of_day() -> Duration {
    told_apart(wall_clock(), device::boottime())
}

/// A clock that was never set says the same at every start. The time since the machine started
/// takes its place: it tells the starts on it apart. What is not told apart is a start after the
/// machine's own, and by then others have forgotten us, as that takes them ten seconds.
fn told_apart(wall: Duration, uptime: Duration) -> Duration {
    if wall >= boot::EPOCH { wall } else { boot::EPOCH.saturating_add(uptime) }
}

/// The boot count of this start, without changing anything.
pub fn peek(state_file: Option<&Path>) -> Result<StartCount, BootError> {
    let Some(path) = state_file else {
        return Ok(boot::by_clock(time_of_day()).boot.into());
    };
    match count(path) {
        Ok(boot) => Ok(boot.into()),
        Err(error) => without_the_disk(path, error).map(|(count, _)| count),
    }
}

/// The boot count of this start: made to last in the state file before it is used, or, without one,
/// waited for up to 250 ms.
///
/// A disk that takes nothing keeps no node from starting: then the count comes from the clock as
/// without a file. That is refused where the clock was never set, or is behind the file, for the
/// next start would have the same count.
pub fn advance(state_file: Option<&Path>) -> Result<StartCount, BootError> {
    let Some(path) = state_file else {
        let Counted { boot, wait } = boot::by_clock(time_of_day());
        std::thread::sleep(wait);
        return Ok(boot.into());
    };
    match count(path).and_then(|boot| write(path, boot).map(|()| boot)) {
        Ok(boot) => Ok(boot.into()),
        Err(error) => {
            let (count, wait) = without_the_disk(path, error)?;
            std::thread::sleep(wait);
            Ok(count)
        }
    }
}

/// What the file gives, if it can be replaced.
fn count(path: &Path) -> Result<Boot, BootError> {
    let before = read(path)?.map(Boot);
    check_replaceable(path)?;
    boot::after(before, time_of_day()).ok_or_else(|| BootError::Exhausted { path: path.to_owned() })
}

/// The count by the clock, and the wait for it, where the disk is why the file cannot be replaced.
fn without_the_disk(path: &Path, error: BootError) -> Result<(StartCount, Duration), BootError> {
    let Counted { boot, wait } = boot::by_clock(time_of_day());
    // After 2058 each start would have the last number there is.
    let is_ahead =
        clock_is_set() && boot < Boot(u32::MAX) && read(path)?.is_none_or(|last| Boot(last) < boot);
    if !error.is_of_the_disk() || !is_ahead {
        return Err(error);
    }
    Ok((StartCount { boot, unsaved: Some(error) }, wait))
}

fn read(path: &Path) -> Result<Option<u32>, BootError> {
    let error = |source| BootError::Io { path: path.to_owned(), operation: "read it", source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(error(source)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LEN_MAX).read_to_end(&mut bytes).map_err(error)?;
    let text = String::from_utf8_lossy(&bytes);
    match text.trim_end().parse() {
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(BootError::Malformed { path: path.to_owned(), found: text.into_owned() }),
    }
}

/// Whether a new file could be put in place of the old one.
fn check_replaceable(path: &Path) -> Result<(), BootError> {
    let left_over = temporary_of(path);
    directory::takes_files(directory::of(path))
        .and_then(|()| match accessat(CWD, &left_over, Access::WRITE_OK, AtFlags::EACCESS) {
            Err(Errno::NOENT) => Ok(()),
            Ok(()) if left_over.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            result => result.map_err(io::Error::from),
        })
        .map_err(|source| BootError::Io { path: path.to_owned(), operation: CREATE, source })
}

const CREATE: &str = "create a new one beside it";

/// Where a new file is written before it takes the place of the old one.
fn temporary_of(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    temporary.into()
}

/// Writes a new file and puts it in place of the old one: whenever the power fails, one of the two
/// is there whole.
fn write(path: &Path, boot: Boot) -> Result<(), BootError> {
    let error =
        |operation| move |source| BootError::Io { path: path.to_owned(), operation, source };
    let temporary = temporary_of(path);
    let mut file = File::create(&temporary).map_err(error(CREATE))?;
    writeln!(file, "{}", boot.0)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(error("replace it"))?;
    File::open(directory::of(path))
        .and_then(|directory| directory.sync_all())
        .map_err(error("make its directory entry last"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            let _ = fs::remove_file(&path);
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn every_start_is_newer_even_within_one_second_and_with_a_clock_set_back() {
        let file = Scratch::new("boot-newer");
        let [first, second] = [(); 2].map(|()| advance(Some(&file.0)).unwrap());
        assert!(second.boot > first.boot);
        assert!(second.unsaved.is_none());
        fs::write(&file.0, "4294967000\n").unwrap();
        assert_eq!(peek(Some(&file.0)).unwrap().boot, Boot(4_294_967_001));
        assert_eq!(advance(Some(&file.0)).unwrap().boot, Boot(4_294_967_001));
    }

    #[test]
    fn without_a_file_the_clock_counts_and_two_starts_never_share_a_number() {
        let starts: Vec<_> = (0..4).map(|_| advance(None).unwrap().boot).collect();
        assert!(starts.is_sorted_by(|earlier, later| earlier < later), "{starts:?}");
    }

    #[test]
    fn with_a_clock_that_was_never_set_starts_on_one_machine_are_told_apart() {
        let secs = Duration::from_secs;
        for wall in [Duration::ZERO, secs(3), boot::EPOCH - secs(1)] {
            let count = |wall, uptime| boot::by_clock(told_apart(wall, secs(uptime))).boot;
            let starts = [20, 21, 80, 3600].map(|uptime| count(wall, uptime));
            assert!(starts.is_sorted_by(|earlier, later| earlier < later), "{starts:?}");
            assert!(starts[3] < count(boot::EPOCH + secs(86_400), 5), "once it is set");
        }
    }

    #[test]
    fn a_file_with_something_else_in_it_is_left_alone() {
        let file = Scratch::new("boot-malformed");
        for content in ["", "yesterday\n", "-1", "99999999999", "1 2"] {
            fs::write(&file.0, content).unwrap();
            let error = advance(Some(&file.0)).unwrap_err();
            assert!(matches!(error, BootError::Malformed { .. }), "{error}");
            assert_eq!(fs::read_to_string(&file.0).unwrap(), content);
        }
        fs::write(&file.0, u32::MAX.to_string()).unwrap();
        assert!(matches!(advance(Some(&file.0)).unwrap_err(), BootError::Exhausted { .. }));
    }

    #[test]
    fn looking_finds_what_counting_would_and_leaves_nothing() {
        let directory = Scratch::new("boot-directory");
        let blocked = directory.0.with_extension("blocked");
        fs::create_dir_all(blocked.with_extension("blocked.new")).unwrap();
        fs::write(&directory.0, "7\n").unwrap();
        for path in [
            directory.0.join("boots"),
            PathBuf::from("/proc/nowhere/boots"),
            PathBuf::from("/proc/boots"),
            directory.0.with_extension("none").join("boots"),
            blocked.clone(),
        ] {
            let (seen, met) = (peek(Some(&path)).unwrap_err(), advance(Some(&path)).unwrap_err());
            assert_eq!(seen.to_string(), met.to_string());
            assert!(seen.to_string().contains("boots") || path == blocked, "{seen}");
        }
        fs::remove_dir(blocked.with_extension("blocked.new")).unwrap();
        assert!(peek(Some(&blocked)).is_ok());
        assert!(!blocked.exists() && !temporary_of(&blocked).exists());
    }

    #[test]
    fn a_disk_that_takes_nothing_leaves_the_clock_unless_the_file_is_ahead_of_it() {
        let file = Scratch::new("boot-full");
        let error = |kind: io::ErrorKind| {
            let (path, source) = (file.0.clone(), kind.into());
            BootError::Io { path, operation: CREATE, source }
        };
        let count = |kind| without_the_disk(&file.0, error(kind));
        let full = io::ErrorKind::StorageFull;
        for content in [None, Some("7\n")] {
            if let Some(content) = content {
                fs::write(&file.0, content).unwrap();
            }
            let before = boot::by_clock(time_of_day()).boot;
            let (start, wait) = count(full).unwrap();
            assert!(start.boot >= before && wait <= boot::UNIT);
            let why = start.why_unsaved().unwrap();
            assert!(why.contains("boot-full") && why.ends_with(": no storage space"), "{why}");
            assert!(count(io::ErrorKind::ReadOnlyFilesystem).is_ok());
            let denied = count(io::ErrorKind::PermissionDenied).unwrap_err();
            assert!(denied.to_string().contains("cannot create"), "{denied}");
        }
        fs::write(&file.0, "4294967000\n").unwrap();
        assert!(count(full).unwrap_err().to_string().contains("cannot create"));
        fs::write(&file.0, "yesterday\n").unwrap();
        assert!(matches!(count(full).unwrap_err(), BootError::Malformed { .. }));
    }

    #[test]
    fn an_unusable_path_is_an_error_that_names_it() {
        let error = advance(Some(Path::new("/proc/nowhere/boot"))).unwrap_err();
        assert!(error.to_string().contains("/proc/nowhere/boot"), "{error}");
        let error = advance(Some(Path::new("/"))).unwrap_err();
        assert!(matches!(error, BootError::Io { .. }), "{error}");
    }
}

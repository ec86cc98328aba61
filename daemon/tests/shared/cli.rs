//! What both daemons promise at the command line. Each names itself and runs all of it.
//!
//! No test here starts a node: every command line lacks something. What can be seen depends on
//! privileges in one place only, the order of checks: without capabilities that is the first
//! complaint.

use std::process::{Output, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// A daemon under test.
pub(crate) struct Daemon {
    /// Path of the program.
    pub(crate) program: &'static str,
    /// Prefix of its environment variables.
    pub(crate) env_prefix: &'static str,
    /// Flags only it has, with a valid and an invalid value.
    pub(crate) own_flags: &'static [(&'static str, &'static str, &'static str)],
}

/// Flags both have, with a valid and an invalid value.
const FLAGS: &[(&str, &str, &str)] = &[
    ("--bind", "nope0", "a/b"),
    ("--tap-name", "tap9", "sixteen_bytes_xx"),
    ("--ip", "10.0.0.1/24", "10.0.0.1/33"),
    ("--tap-mac", "02:00:00:00:00:07", "01:00:00:00:00:07"),
    ("--bridge", "nobr0", "b/r"),
    ("--mtu", "1400", "67"),
    ("--pmtu-discovery", "on", "maybe"),
    ("--tap-offload", "off", "maybe"),
    ("--ethertype", "0x88b6", "0x0800"),
    ("--hello-history", "20", "65"),
    ("--node-id", "02:00:00:00:00:01", "01:00:00:00:00:01"),
    ("--state-file", "/proc/no/such/directory", "/"),
    ("--control", "/nonexistent/v2x.sock", "/run/"),
    ("--http", "8080", "eighty"),
    ("--position", "48.137,11.576", "48.137"),
    ("--record", "/dev/null/recordings", "/dev/null"),
    ("--record-size", "64", "0"),
    ("--record-age", "60", "soon"),
    ("--record-snap", "96", "65536"),
    ("--log", "warn", "loud"),
    ("--log-format", "json", "xml"),
];

impl Daemon {
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env_clear().timeout(Duration::from_secs(20));
        command
    }

    fn run<'a>(&self, line: impl IntoIterator<Item = &'a str>) -> (i32, String) {
        ended(self.command().args(line).output().expect("the daemon starts"))
    }

    fn flags(&self) -> impl Iterator<Item = &(&'static str, &'static str, &'static str)> {
        FLAGS.iter().chain(self.own_flags)
    }

    /// Every flag, its variable and every exit code are in the help.
    pub(crate) fn help_lists_everything(&self) {
        let (code, text) = self.run(["--help"]);
        assert_eq!(code, 0);
        for (flag, ..) in self.flags().chain(&[("--check", "", ""), ("--no-control", "", "")]) {
            assert!(text.contains(flag), "{flag} is not in:\n{text}");
            let variable = flag.trim_start_matches('-').replace('-', "_").to_uppercase();
            let variable = format!("{}_{variable}=", self.env_prefix);
            assert!(text.contains(&variable), "{variable} is not in:\n{text}");
        }
        for short in ["-b", "-t", "-i", "-m"] {
            assert!(text.contains(&format!("{short}, --")), "{short} is not in:\n{text}");
        }
        for code in 0..=4 {
            assert!(text.contains(&format!("\n  {code}  ")), "code {code} is not in:\n{text}");
        }
        let (code, text) = self.run(["--version"]);
        assert_eq!(code, 0, "{text}");
    }

    /// An invalid value of any flag is refused with code 2 and a message that names the flag.
    pub(crate) fn bad_values_are_refused(&self) {
        for (flag, _, bad) in self.flags().filter(|(flag, ..)| !is_path(flag)) {
            let bind: &[_] = if *flag == "--bind" { &[] } else { &["--bind", "nope0"] };
            let (code, text) = self.run(bind.iter().copied().chain([*flag, *bad]));
            assert_eq!(code, 2, "{flag} {bad}: {text}");
            assert!(text.contains(flag) && text.contains(bad), "{flag} {bad}: {text}");
        }
        for line in [&[][..], &["--bind"], &["-b", "x", "--no-such-flag"], &["-b", "x", "y"]] {
            let (code, text) = self.run(line.iter().copied());
            assert_eq!(code, 2, "{line:?}: {text}");
        }
        for taken in ["0x0800", "0x0806", "0x86dd", "0x8100", "0x8947", "0x88dc", "0x05ff"] {
            let (code, text) = self.run(["-b", "nope0", "--ethertype", taken]);
            assert_eq!(code, 2, "{taken}: {text}");
        }
    }

    /// Every flag has a key; all faults of a file are told at once, by the start and by whatever
    /// only looks.
    pub(crate) fn bad_files_are_refused(&self) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node.toml");
        let path = file.to_str().unwrap();
        let faults: Vec<_> = self.flags().filter(|(flag, ..)| !is_path(flag)).collect();
        let key = |flag: &str| flag.trim_start_matches('-').replace('-', "_");
        let text: String =
            faults.iter().map(|(flag, _, bad)| format!("{} = \"{bad}\"\n", key(flag))).collect();
        std::fs::write(&file, text).unwrap();
        for line in [&["--config", path][..], &["--config", path, "--check"]] {
            let (code, text) = self.run(line.iter().copied());
            assert_eq!(code, 2, "{text}");
            for (index, (flag, _, bad)) in faults.iter().enumerate() {
                let place = format!("{path}:{}: {}: ", index + 1, key(flag));
                let said = text.lines().find(|line| line.contains(&place));
                let said = said.unwrap_or_else(|| panic!("{place} is not in:\n{text}"));
                assert!(said.contains(bad), "{said}");
            }
        }
        let gone = directory.path().join("gone.toml");
        let (code, text) = self.run(["--config", gone.to_str().unwrap()]);
        assert!(code == 2 && text.contains("gone.toml"), "{code}: {text}");
    }

    /// Faults of the line, of variables and of the file are told at once, each with where it is.
    pub(crate) fn all_faults_are_said_at_once(&self) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node.toml");
        let path = file.to_str().unwrap();
        std::fs::write(&file, "bind = 'a/b'\nlog = 'warn'\ncoalesce = 1001\n").unwrap();
        let variable = |name: &str| format!("{}_{name}", self.env_prefix);
        let bad = [("MTU", "5"), ("BUSY_POLL", "1002"), ("NO_CONTROL", "perhaps")];
        let run = |line: &[&str]| {
            let mut command = self.command();
            command.envs(bad.map(|(name, value)| (variable(name), value))).args(line);
            ended(command.output().expect("the daemon starts"))
        };
        for (line, also) in [
            (&["--check"][..], &[][..]),
            (&["--config", path], &["1: bind: ", "3: coalesce: "]),
            (&["--config", path, "--hello-history", "65"], &["1: bind: ", "3: coalesce: "]),
        ] {
            let (code, text) = run(line);
            assert_eq!(code, 2, "{line:?}: {text}");
            for (name, value) in bad {
                let said = text.lines().find(|line| line.contains(&variable(name)));
                assert!(said.is_some_and(|said| said.contains(value)), "{name}: {text}");
            }
            for place in also {
                assert!(text.contains(&format!("{path}:{place}")), "{place} is not in: {text}");
            }
            assert_eq!(text.contains("--hello-history"), line.contains(&"65"), "{text}");
        }
        // What was typed counts, and not its variable.
        let (code, text) = run(&["-b", "nope0", "--mtu", "1400"]);
        assert!(code == 2 && !text.contains("MTU"), "{code}: {text}");
        let (code, text) = run(&["--help"]);
        assert!(code == 0 && text.contains("--busy-poll"), "{code}: {text}");
    }

    /// What keeps a daemon from starting is told at once, each with where it was said, and by the
    /// start as by `--check`.
    pub(crate) fn all_that_cannot_be_had_is_said_at_once(&self) {
        if !has_capabilities() {
            return self.missing_capabilities_are_named();
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node.toml");
        let path = file.to_str().unwrap();
        let settings = "bind = 'nope0'\nbridge = 'nobr0'\nstate_file = '/no/such/boots'\n\
                        record = '/no/such/drive'\nposition = 'file:/no/such/log'\n\
                        control = '/no/such.sock'\nhttp = '192.0.2.1:8080'\n";
        std::fs::write(&file, settings).unwrap();
        let place = |(line, number): (&str, usize)| {
            format!("{path}:{number}: {}: ", line.split(' ').next().unwrap())
        };
        let mut places: Vec<_> = settings.lines().zip(1..).map(place).collect();
        let variable = format!("{}_STATE_FILE", self.env_prefix);
        let run = |line: &[&str]| {
            let mut command = self.command();
            command.env(&variable, "/no/boots").args(["--config", path, "--record", "/proc"]);
            ended(command.args(line).output().expect("the daemon starts"))
        };
        let (code, text) = run(&["--check"]);
        assert_eq!(run(&[]), (code, text.clone()), "the start says the same");
        // A bridge may come; a directory that is wrong stays wrong.
        assert_eq!(code, 2, "{text}");
        places[2] = format!("{variable}: state file /no/boots");
        places[3] = "--record: ".to_owned();
        assert_eq!(text.lines().count(), places.len(), "{text}");
        for place in places {
            assert!(text.contains(&format!(": {place}")), "{place} is not in:\n{text}");
        }
    }

    /// A flag wins also over what excludes it.
    pub(crate) fn a_flag_wins_over_what_excludes_it(&self) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node.toml");
        let path = file.to_str().unwrap();
        let (off, on) = ("no_control = true\n", "control = '/run/v2x/x.sock'\n");
        std::fs::write(&file, format!("bind = 'nope0'\n{off}{on}")).unwrap();
        let (code, text) = self.run(["--config", path, "--check"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(&format!("{path}:3: control: ")), "{text}");
        assert!(text.contains("no_control, which line 2 sets"), "{text}");
        for (said, line, expected) in [
            (off, &["--control", "/run/x.sock"][..], ["no_control = false", "control = "]),
            (on, &["--no-control"], ["no_control = true", "# control is not set"]),
        ] {
            std::fs::write(&file, format!("bind = 'nope0'\n{said}")).unwrap();
            let line = ["--config", path, "--show-config"].into_iter().chain(line.iter().copied());
            let (code, shown) = self.run(line);
            assert_eq!(code, 0, "{shown}");
            for expected in expected {
                let said = shown.lines().find(|line| line.starts_with(expected));
                let said = said.unwrap_or_else(|| panic!("{expected} is not in:\n{shown}"));
                assert!(!said.contains(path), "the file has no say: {said}");
            }
        }
    }

    /// Flags win over variables, these over the file, and it says so of each setting.
    pub(crate) fn settings_come_from_where_they_should(&self) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node.toml");
        let path = file.to_str().unwrap();
        let settings = "bind = 'nope0'\nmtu = 1300\nhello_history = 20\n\
                        ip = ['10.0.0.1', 'fd00::1']\nlog = 'warn'\n";
        std::fs::write(&file, settings).unwrap();
        let variable = |name: &str| format!("{}_{name}", self.env_prefix);
        let mut command = self.command();
        command.env(variable("HELLO_HISTORY"), "21").env(variable("LOG"), "debug");
        // Neither is TOML as it is typed.
        command.env(variable("NO_CONTROL"), "yes").env(variable("TAP_NAME"), "007");
        command.args(["--config", path, "--log", "error", "--show-config"]);
        let (code, shown) = ended(command.output().expect("the daemon starts"));
        assert_eq!(code, 0, "{shown}");
        for (setting, origin) in [
            ("bind = \"nope0\"", format!("{path}:1")),
            ("mtu = 1300", format!("{path}:2")),
            ("hello_history = 21", variable("HELLO_HISTORY")),
            ("ip = \"10.0.0.1,fd00::1\"", format!("{path}:4")),
            ("log = \"error\"", "--log".to_owned()),
            ("coalesce = 30", "default".to_owned()),
            ("no_control = true", variable("NO_CONTROL")),
            ("tap_name = \"007\"", variable("TAP_NAME")),
            ("share_position = false", "default".to_owned()),
        ] {
            let line = shown.lines().find(|line| line.starts_with(setting));
            let line = line.unwrap_or_else(|| panic!("{setting} is not in:\n{shown}"));
            assert!(line.ends_with(&format!("# {origin}")), "{line}");
        }
        assert!(shown.contains("# bridge is not set"), "{shown}");
        // What it shows is a file that sets the same.
        std::fs::write(&file, &shown).unwrap();
        let (code, again) = self.run(["--config", path, "--show-config"]);
        assert_eq!(code, 0, "{again}");
        let values = |text: &str| {
            text.lines().map(|l| l.split('#').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(values(&shown), values(&again));
        // And the start works with it: it gets as far as the interface.
        self.assert_no_such_interface(self.run(["--config", path]));
    }

    /// A variable does what its flag does, and the flag wins.
    pub(crate) fn variables_stand_for_flags(&self) {
        for (flag, _, bad) in self.flags().filter(|(flag, ..)| !is_path(flag)) {
            let variable = flag.trim_start_matches('-').replace('-', "_").to_uppercase();
            let mut command = self.command();
            command.env(format!("{}_{variable}", self.env_prefix), bad);
            if *flag != "--bind" {
                command.args(["--bind", "nope0"]);
            }
            let (code, text) = ended(command.output().expect("the daemon starts"));
            assert_eq!(code, 2, "{variable}={bad}: {text}");
            assert!(text.contains(bad), "{variable}={bad}: {text}");
            let variable = format!("{}_{variable}", self.env_prefix);
            assert!(text.contains(&variable), "{variable}={bad} is not named: {text}");
            // As good as unset.
            let mut command = self.command();
            command.env(&variable, "").args(["--bind", "nope0"]);
            self.assert_no_such_interface(ended(command.output().expect("the daemon starts")));
        }
        let mut command = self.command();
        command.env(format!("{}_MTU", self.env_prefix), "1").args(["-b", "nope0", "-m", "1400"]);
        self.assert_no_such_interface(ended(command.output().expect("the daemon starts")));
        let mut command = self.command();
        command.env(format!("{}_BIND", self.env_prefix), "nope0");
        self.assert_no_such_interface(ended(command.output().expect("the daemon starts")));
    }

    /// A radio that does not exist is code 4, also when only checking.
    pub(crate) fn a_missing_interface_has_its_own_code(&self) {
        self.assert_no_such_interface(self.run(["--bind", "nope0"]));
        self.assert_no_such_interface(self.run(["--bind", "nope0", "--check"]));
    }

    fn assert_no_such_interface(&self, (code, text): (i32, String)) {
        if has_capabilities() {
            assert_eq!(code, 4, "{text}");
            assert!(text.contains("nope0") && text.contains("no such interface"), "{text}");
        } else {
            assert_eq!(code, 3, "{text}");
        }
    }

    /// An interface that is not Ethernet, a pair of equal names: refused before anything is made.
    pub(crate) fn unusable_interfaces_are_refused(&self) {
        if !has_capabilities() {
            return self.missing_capabilities_are_named();
        }
        let (code, text) = self.run(["--bind", "lo", "--check"]);
        assert_eq!(code, 4, "{text}");
        assert!(text.contains("loopback") && text.contains("expected an Ethernet"), "{text}");
        let (code, text) = self.run(["--bind", "same0", "--tap-name", "same0"]);
        assert_eq!(code, 2, "{text}");
        // A UDP link has a known MTU of 1458, so this needs no interface.
        let (code, text) = self.run(["--bind", "udp:", "--mtu", "12000", "--check"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("12000") && text.contains("1458"), "{text}");
        let line = ["--bind", "udp:", "--mtu", "1000", "--ip", "fd00::1", "--check"];
        let (code, text) = self.run(line);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("1000") && text.contains("1280"), "{text}");
        let (code, text) = self.run(["--bind", "udp:", "--state-file", "/", "--check"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("state file /"), "{text}");
        let (code, text) = self.run(["--bind", "udp:", "--check"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("MTU 1500"), "{text}");
        self.files_that_cannot_be_made_are_found();
    }

    /// What would have to be made and cannot be: found by looking, as by the start.
    fn files_that_cannot_be_made_are_found(&self) {
        for (flag, path) in [
            ("--control", "/nope/x.sock"),
            ("--control", "/dev/null"),
            ("--record", "/proc"),
            ("--record", "/dev/null"),
            ("--state-file", "/proc/boots"),
        ] {
            let line = ["--bind", "udp:", flag, path];
            let (code, looked) = self.run(line.into_iter().chain(["--check"]));
            assert!([2, 3].contains(&code) && looked.contains(path), "{code}: {looked}");
            assert_eq!(self.run(line), (code, looked), "{flag} {path}");
        }
    }

    /// Without capabilities the message names both, and how to grant them.
    pub(crate) fn missing_capabilities_are_named(&self) {
        let mut command = if has_capabilities() {
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set=-all", "--inh-caps=-all", self.program]);
            command
        } else {
            self.command()
        };
        let output = command.args(["--bind", "nope0"]).output().expect("setpriv of util-linux");
        let (code, text) = ended(output);
        assert_eq!(code, 3, "{text}");
        for word in ["CAP_NET_ADMIN", "CAP_NET_RAW", "setcap", "ambient"] {
            assert!(text.contains(word), "{word} is not in: {text}");
        }
        assert!(text.lines().count() <= 3, "{text}");
    }

    /// Nobody reads what is printed, or it cannot be written: no panic, and the code tells.
    pub(crate) fn nobody_need_read_the_output(&self) {
        let lines: &[(&[&str], i32)] = &[
            (&["--help"], 0),
            (&["--version"], 0),
            (&["--no-such-flag"], 2),
            (&["--bind", "nope0"], if has_capabilities() { 4 } else { 3 }),
            (&["--bind", "udp:", "--check"], if has_capabilities() { 0 } else { 3 }),
        ];
        for (line, expected) in lines {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let mut command = std::process::Command::new(self.program);
            command.env_clear().args(*line).stdin(Stdio::null());
            command.stdout(writer.try_clone().expect("a descriptor")).stderr(writer);
            let status = command.status().expect("the daemon starts");
            assert_eq!(status.code(), Some(*expected), "{line:?}: {status}");
        }
    }

    /// Whatever is typed, the answer is a code and a message, soon.
    pub(crate) fn any_mixture_of_flags_ends_in_order(&self) {
        const SEED: u64 = 0x0b5e_55ed;
        let mut random = Pcg32::seed_from_u64(SEED);
        let odd = ["", "-", "--", "=", "\u{1f697}", "-1", "0", "99999999999999999999", "%d", "a b"];
        let flags: Vec<_> = self.flags().filter(|(flag, ..)| *flag != "--bind").collect();
        for round in 0..200 {
            let mut line = Vec::new();
            // Mostly a radio, and never one that exists.
            match random.next_u32() % 8 {
                0 => {}
                1 => line.extend(["--bind", "udp:10.0.0.1:1"]),
                _ => line.extend(["--bind", "nope0"]),
            }
            for _ in 0..random.next_u32() % 6 {
                let pick = random.next_u32() as usize;
                let (flag, good, bad) = flags[pick % flags.len()];
                match random.next_u32() % 8 {
                    0 => line.push(flag),
                    1 => line.extend([*flag, odd[pick % odd.len()]]),
                    2 => line.push(odd[pick % odd.len()]),
                    3 => line.push("--check"),
                    4 => line.extend([*flag, *bad]),
                    _ => line.extend([*flag, *good]),
                }
            }
            let (code, text) = self.run(line.iter().copied());
            assert!((2..=4).contains(&code), "round {round} {line:?} ended with {code}:\n{text}");
            assert!(!text.contains("panicked"), "round {round} {line:?}:\n{text}");
            assert!(!text.trim().is_empty(), "round {round} {line:?} said nothing");
        }
    }
}

/// Whether its value is good shows only when it is used.
fn is_path(flag: &str) -> bool {
    ["--state-file", "--record"].contains(&flag)
}

/// Exit code, and everything printed. A daemon that had to be killed has none.
fn ended(output: Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code().unwrap_or_else(|| panic!("it had to be killed:\n{text}")), text)
}

fn has_capabilities() -> bool {
    const BOTH: u64 = 1 << 12 | 1 << 13;
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("CapEff");
    u64::from_str_radix(line.trim(), 16).expect("a number") & BOTH == BOTH
}

//! The configuration file: `--config FILE`, TOML with one key for each flag.
//!
//! A key is the name of its flag with `_` for `-`, and takes what the flag takes; so a new flag has
//! a key by itself. What a file says stands in for the default: flags win over variables, these
//! over the file. Everything wrong with a file is said at once, each with its line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};
use toml::de::{DeTable, DeValue};

/// Flags that ask for something rather than set it, and so have no key.
pub const NOT_SETTINGS: [&str; 5] = ["check", "config", "help", "show_config", "version"];

/// Above this two words are alike enough to have been meant (Jaro, 1 is equal).
const LIKENESS_MIN: f64 = 0.7;

/// What a file says, by key.
#[derive(Clone, Debug, Default)]
pub struct File {
    path: PathBuf,
    settings: BTreeMap<String, Setting>,
}

#[derive(Clone, Debug)]
struct Setting {
    line: usize,
    values: Vec<String>,
}

/// The flags that have keys.
pub fn settings(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !NOT_SETTINGS.contains(&arg.get_id().as_str()))
}

impl File {
    /// Reads a file for a program with these flags. The error is everything that is wrong with it,
    /// each with its line.
    pub fn read(path: &Path, command: &Command) -> Result<Self, Vec<String>> {
        let text = fs::read_to_string(path).map_err(|error| {
            vec![format!("{}: cannot read the configuration: {error}", path.display())]
        })?;
        let (settings, faults) = judge(&text, command);
        if faults.is_empty() {
            return Ok(Self { path: path.to_owned(), settings });
        }
        let fault = |(line, fault)| format!("{}:{line}: {fault}", path.display());
        Err(faults.into_iter().map(fault).collect())
    }

    /// The same file without what a flag or a variable excludes, since they win.
    #[must_use]
    pub fn without_excluded(mut self, command: &Command, nearer: &ArgMatches) -> Self {
        let pairs = exclusive(command).flat_map(|(one, other)| [(one, other), (other, one)]);
        for (_, loser) in pairs.filter(|(winner, _)| is_said(nearer, winner)) {
            self.settings.remove(loser.get_id().as_str());
        }
        self
    }

    /// The same flags, with what the file says as their defaults.
    pub fn defaults(&self, command: Command) -> Command {
        command.mut_args(|arg| match self.settings.get(arg.get_id().as_str()) {
            Some(setting) => arg.required(false).default_values(setting.values.clone()),
            None => arg,
        })
    }

    /// Where the file sets this key: file and line.
    pub fn place(&self, key: &str) -> Option<String> {
        let setting = self.settings.get(key)?;
        Some(format!("{}:{}", self.path.display(), setting.line))
    }
}

/// Pairs of flags of which the command line takes one.
fn exclusive(command: &Command) -> impl Iterator<Item = (&Arg, &Arg)> {
    settings(command).flat_map(|arg| {
        command.get_arg_conflicts_with(arg).into_iter().map(move |other| (arg, other))
    })
}

/// Whether somebody gave this flag, or its variable, a value that sets something.
fn is_said(matches: &ArgMatches, arg: &Arg) -> bool {
    let id = arg.get_id().as_str();
    let is_default = matches!(matches.value_source(id), None | Some(ValueSource::DefaultValue));
    !is_default && (arg.get_action().takes_values() || matches.get_flag(id))
}

/// Everything in the text, and everything that is wrong with it, each with its line.
fn judge(text: &str, command: &Command) -> (BTreeMap<String, Setting>, Vec<(usize, String)>) {
    let line = |place: usize| {
        let before = text.as_bytes().get(..place).unwrap_or(text.as_bytes());
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    };
    let (table, broken) = DeTable::parse_recoverable(text);
    let mut faults: Vec<_> = broken
        .iter()
        .map(|error| (error.span().map_or(1, |span| line(span.start)), error.message().to_owned()))
        .collect();
    let mut settings_of = BTreeMap::new();
    for (key, value) in table.get_ref() {
        let (name, place) = (key.get_ref().as_ref(), line(key.span().start));
        let Some(arg) = settings(command).find(|arg| arg.get_id().as_str() == name) else {
            faults.push((place, unknown(name, command)));
            continue;
        };
        match words(value.get_ref(), arg).and_then(|values| taken(arg, &values).map(|()| values)) {
            Ok(values) => {
                settings_of.insert(name.to_owned(), Setting { line: place, values });
            }
            // What the parser made up in place of what it could not read is no second fault.
            Err(_)
                if broken
                    .iter()
                    .any(|error| error.span().is_some_and(|s| line(s.start) == place)) => {}
            Err(fault) => faults.push((place, format!("{name}: {fault}"))),
        }
    }
    faults.extend(contradictions(&settings_of, command));
    faults.sort();
    (settings_of, faults)
}

/// Keys that the command line does not take together: at fault is the later one.
fn contradictions(settings: &BTreeMap<String, Setting>, command: &Command) -> Vec<(usize, String)> {
    let said = |arg: &Arg| {
        let (key, setting) = settings.get_key_value(arg.get_id().as_str())?;
        let is_off = !arg.get_action().takes_values() && setting.values == ["false"];
        (!is_off).then_some((setting.line, key))
    };
    let fault = |(one, other): (&Arg, &Arg)| {
        let mut both = [said(one)?, said(other)?];
        both.sort();
        let [(earlier, first), (later, second)] = both;
        Some((later, format!("{second}: cannot be used with {first}, which line {earlier} sets")))
    };
    exclusive(command).filter_map(fault).collect()
}

fn unknown(name: &str, command: &Command) -> String {
    let name_of = |arg: &Arg| arg.get_id().as_str().to_owned();
    // `-` as in the flag is the likeliest mistake.
    let meant = name.replace('-', "_");
    let near = settings(command)
        .map(|arg| (strsim::jaro(&meant, arg.get_id().as_str()), name_of(arg)))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match near {
        _ if NOT_SETTINGS.contains(&&*meant) => format!("{name} is a flag only, and no setting"),
        Some((likeness, near)) if likeness >= LIKENESS_MIN => {
            format!("there is no setting {name}; did you mean {near}?")
        }
        _ => format!("there is no setting {name}; there are {}", {
            settings(command).map(name_of).collect::<Vec<_>>().join(", ")
        }),
    }
}

/// The words that would follow the flag.
fn words(value: &DeValue<'_>, arg: &Arg) -> Result<Vec<String>, String> {
    let is_list = arg.get_value_delimiter().is_some();
    Ok(match value {
        DeValue::Boolean(is_set) if !arg.get_action().takes_values() => vec![is_set.to_string()],
        DeValue::String(text) if arg.get_action().takes_values() => vec![text.to_string()],
        DeValue::Integer(number) if arg.get_action().takes_values() => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            vec![parsed.map_err(|error| error.to_string())?.to_string()]
        }
        DeValue::Array(items) if is_list => {
            let each = items.iter().map(|item| match item.get_ref() {
                DeValue::Array(_) => Err("expected a list of values, not of lists".to_owned()),
                one => words(one, arg),
            });
            each.collect::<Result<Vec<_>, _>>()?.concat()
        }
        other => {
            let expected = match (arg.get_action().takes_values(), is_list) {
                (false, _) => "true or false",
                (true, false) => "a string or a whole number",
                (true, true) => "a string, or a list of strings",
            };
            return Err(format!("expected {expected}, not a value of type {}", other.type_str()));
        }
    })
}

/// Whether the flag takes these words; why not, as it says it itself.
fn taken(arg: &Arg, values: &[String]) -> Result<(), String> {
    if !arg.get_action().takes_values() {
        return Ok(());
    }
    let flag = arg.get_long().unwrap_or_default();
    let line: Vec<_> = values.iter().map(|value| format!("--{flag}={value}")).collect();
    refusal(arg.clone(), &line).map_or(Ok(()), Err)
}

/// What a flag has against this line, as it says it itself. No other flag has a say.
pub(crate) fn refusal(arg: Arg, line: &[String]) -> Option<String> {
    let alone = Command::new("").no_binary_name(true).disable_help_flag(true);
    let alone = alone.arg(arg.required(false).conflicts_with(Resettable::<Id>::Reset));
    alone.try_get_matches_from(line).err().map(|error| one_line(&error))
}

/// What clap says, without advice that fits a command line only.
pub(crate) fn one_line(error: &clap::Error) -> String {
    let said = error.to_string();
    let ends = ["\n\nUsage:", "\n\nFor more"].into_iter().filter_map(|end| said.find(end));
    let said = said.get(..ends.min().unwrap_or(said.len())).unwrap_or_default();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser};

    use crate::args::Common;

    #[derive(Debug, Parser)]
    struct Args {
        #[command(flatten)]
        common: Common,
    }

    fn faults(text: &str) -> Vec<String> {
        let (_, faults) = judge(text, &Args::command());
        faults.into_iter().map(|(line, fault)| format!("{line}: {fault}")).collect()
    }

    #[test]
    fn takes_what_the_flags_take() {
        let text = "bind = 'wlan0'\nip = ['10.0.0.7/24', 'fd00::7']\nethertype = 0x88b6\n\
                    mtu = 1400\nbusy_poll = '0'\nbundles = 'off'\nlog = 'warn,node_lib=debug'\n";
        let (settings, faults) = judge(text, &Args::command());
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(settings["ip"].values, ["10.0.0.7/24", "fd00::7"]);
        assert_eq!(
            (&settings["ethertype"].values[0][..], settings["ethertype"].line),
            ("34998", 3)
        );
        assert_eq!(settings.len(), 7);
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_with_its_line() {
        let found = faults(
            "bind = 'a/b'\nhello-history = 5\nmtu = 60\n\nip = [['10.0.0.1']]\nbundles = true\n\
             coalesce = 1.5\nchekc = 1\ncheck = true\n[tap]\nname = 'x'\nlog_format = 'xml'\n",
        );
        let expected = [
            "1: bind: invalid value 'a/b'",
            "2: there is no setting hello-history; did you mean hello_history?",
            "3: mtu: invalid value '60'",
            "5: ip: expected a list of values",
            "6: bundles: expected a string",
            "7: coalesce: expected a string or a whole number, not a value of type float",
            "8: there is no setting chekc",
            "9: check is a flag only",
            "10: there is no setting tap",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
        assert!(found[2].contains("68..=65467"), "the range: {}", found[2]);
    }

    #[test]
    fn what_is_no_toml_is_said_with_what_else_is_wrong() {
        let found = faults("bind = \nmtu = 60\ntap_name = 'a\n");
        assert!(found.len() == 3, "{found:#?}");
        for (found, line) in found.iter().zip(["1: ", "2: mtu", "3: "]) {
            assert!(found.starts_with(line), "{found}");
        }
    }

    #[test]
    fn what_excludes_each_other_on_a_command_line_does_so_in_a_file() {
        let contradiction = "3: no_control: cannot be used with control, which line 1 sets";
        assert_eq!(faults("control = '/x'\nbind = 'w'\nno_control = true\n"), [contradiction]);
        let turned = "2: control: cannot be used with no_control, which line 1 sets";
        assert_eq!(faults("no_control = true\ncontrol = '/x'\n"), [turned]);
        assert_eq!(faults("control = '/x'\nno_control = false\n"), [""; 0]);
    }

    /// One of a few hundred files, each a good one with something changed.
    #[test]
    fn whatever_stands_in_a_file_has_a_line_and_nothing_panics() {
        let good =
            "bind = 'wlan0'\nip = ['10.0.0.7/24']\nmtu = 1400\nlog = 'info'\nbundles = 'on'\n";
        let (mut refused, mut named) = (0, 0);
        for at in 0..good.len() {
            for byte in ["", "\0", "'", "=", "\n", "[", "9", "x", "ü"] {
                let changed = format!("{}{byte}{}", &good[..at], &good[at + 1..]);
                let lines = changed.lines().count().max(1) + 1;
                let (_, broken) = DeTable::parse_recoverable(&changed);
                for fault in faults(&changed) {
                    let (line, said) = fault.split_once(": ").unwrap();
                    let line: usize = line.parse().unwrap();
                    assert!((1..=lines).contains(&line), "{fault}: {changed}");
                    refused += 1;
                    // Where it is no TOML there need not be a key.
                    if broken.iter().any(|error| error.message() == said) {
                        continue;
                    }
                    let key = changed.lines().nth(line - 1).unwrap().split('=').next().unwrap();
                    let key = key.trim_matches(['[', ']', '\'', ' ']);
                    let begins = [format!("{key}: "), format!("there is no setting {key}")];
                    let is_named = begins.iter().any(|begin| said.starts_with(begin));
                    assert!(is_named, "{key} is not named: {fault}: {changed}");
                    named += 1;
                }
            }
        }
        assert!(refused > 200 && named > 200, "{refused}, {named} with a key");
    }
}

//! Environment variables: each flag has one, which stands in for it on the command line.

use std::env;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::{Role, config};

/// Name of the variable of this flag.
pub(crate) fn of(role: Role, arg: &Arg) -> String {
    format!("{}_{}", role.env_prefix, arg.get_id()).to_uppercase()
}

/// The flag with its variable. As for a shell, one that is empty is as good as none.
pub(crate) fn with(role: Role, arg: Arg) -> Arg {
    let variable = of(role, &arg);
    let is_empty = env::var_os(&variable).is_some_and(|value| value.is_empty());
    if is_empty { arg } else { arg.env(variable) }
}

/// Everything that is wrong with variables, each with its name. One whose flag was typed does not
/// count.
pub(crate) fn faults(role: Role, command: &Command, typed: &ArgMatches) -> Vec<String> {
    let is_typed =
        |arg: &Arg| typed.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let fault = |arg: &Arg| {
        let fault = config::refusal(with(role, arg.clone()), &[])?;
        Some(format!("{}: {fault}", of(role, arg)))
    };
    command.get_arguments().filter(|arg| !is_typed(arg)).filter_map(fault).collect()
}

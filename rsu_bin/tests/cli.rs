//! The command line of `rsu`.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "../../daemon/tests/shared/cli.rs"]
mod shared;

use shared::Daemon;

const DAEMON: Daemon = Daemon {
    program: env!("CARGO_BIN_EXE_rsu"),
    env_prefix: "RSU",
    own_flags: &[
        ("--hello-periodicity", "50", "9"),
        ("--group-rate", "0", "64001"),
        ("--signal", "off", "radiotap:mon0"),
    ],
};

#[test]
fn help_lists_every_flag_variable_and_exit_code() {
    DAEMON.help_lists_everything();
}

#[test]
fn bad_values_are_refused_by_name() {
    DAEMON.bad_values_are_refused();
}

#[test]
fn variables_stand_for_flags_and_flags_win() {
    DAEMON.variables_stand_for_flags();
}

#[test]
fn a_missing_interface_has_its_own_code() {
    DAEMON.a_missing_interface_has_its_own_code();
}

#[test]
fn unusable_interfaces_and_impossible_pairs_are_refused() {
    DAEMON.unusable_interfaces_are_refused();
}

#[test]
fn missing_capabilities_are_named() {
    DAEMON.missing_capabilities_are_named();
}

#[test]
fn nobody_need_read_what_is_printed() {
    DAEMON.nobody_need_read_the_output();
}

#[test]
fn any_mixture_of_flags_ends_in_order() {
    DAEMON.any_mixture_of_flags_ends_in_order();
}

#[test]
fn files_that_cannot_be_understood_are_refused_by_line() {
    DAEMON.bad_files_are_refused();
}

#[test]
fn flags_win_over_variables_and_these_over_the_file() {
    DAEMON.settings_come_from_where_they_should();
}

#[test]
fn all_faults_are_said_at_once_each_with_where_it_is() {
    DAEMON.all_faults_are_said_at_once();
}

#[test]
fn a_flag_wins_over_what_excludes_it() {
    DAEMON.a_flag_wins_over_what_excludes_it();
}

#[test]
fn all_that_cannot_be_had_is_said_at_once_each_with_where_it_was_said() {
    DAEMON.all_that_cannot_be_had_is_said_at_once();
}

//! The real daemons on real interfaces, over the medium: what the product promises.
//!
//! Promised times are counted in lost probes, not read off a clock: on a busy machine a reply may
//! be late, but only a missing route loses many in a row.

mod batches;
mod checked_start;
mod drive;
mod fail_over;
mod interfaces;
mod lengths;
mod look;
mod numbered;
mod privileges;
mod process;
mod radio_reports;
mod restart;
mod scene;
mod traffic;
mod under_unit;
mod warnings;

use crate::harness::Area;
use crate::plain_user::run_as_plain_user;

pub(crate) const AREA: Area = Area {
    name: "e2e",
    alone: &[
        ("all_traffic_over_1_hop", || traffic::all_traffic_over(1)),
        ("all_traffic_over_2_hops", || traffic::all_traffic_over(2)),
        ("all_traffic_over_3_hops", || traffic::all_traffic_over(3)),
        ("data_does_not_starve_control", fail_over::data_does_not_starve_control),
        ("tcp_crosses_with_offload_at_either_end", batches::tcp_crosses_with_offload_at_either_end),
        ("tcp_is_intact_over_a_bad_link", traffic::tcp_is_intact_over_a_bad_link),
        ("answers_are_looked_for", batches::answers_are_looked_for),
        ("what_waits_together_travels_together", batches::what_waits_together_travels_together),
    ],
    together: &[
        ("silent_death_of_the_upstream_20_times", fail_over::silent_death_of_the_upstream),
        ("corridor_hands_over_eight_clients", drive::corridor_hands_over_eight_clients),
        (
            "a_link_that_fades_is_left_in_time_by_radios_that_try_again",
            drive::a_link_that_fades_is_left_in_time_by_radios_that_try_again,
        ),
        ("a_fading_link_is_left_in_time", drive::a_fading_link_is_left_in_time),
        (
            "a_silent_client_is_known_after_a_restart",
            restart::a_silent_client_is_known_after_a_restart,
        ),
        ("frames_of_every_kind_arrive_once_and_whole", traffic::frames_of_every_kind),
        ("a_host_behind_a_vehicle_is_on_the_lan", traffic::a_host_behind_a_vehicle_is_on_the_lan),
        ("vehicles_reach_each_other", traffic::vehicles_reach_each_other),
        ("no_loop_and_no_duplicate", traffic::no_loop_and_no_duplicate),
        ("frames_doubled_on_air_arrive_once", traffic::frames_doubled_on_air_arrive_once),
        ("silent_client_stays_reachable", fail_over::silent_client_stays_reachable),
        ("goodbye_of_a_road_side_unit", fail_over::goodbye_of_a_road_side_unit),
        ("goodbye_of_a_relay", fail_over::goodbye_of_a_relay),
        ("road_side_unit_restarts", restart::road_side_unit_restarts),
        ("vehicle_restarts", restart::vehicle_restarts),
        ("a_restarted_vehicle_is_reached_at_once", restart::a_restarted_vehicle_is_reached_at_once),
        (
            "a_road_side_unit_without_a_lan_is_left",
            fail_over::a_road_side_unit_without_a_lan_is_left,
        ),
        ("the_last_path_dies_and_comes_back", fail_over::the_last_path_dies_and_comes_back),
        ("radio_goes_down_and_up", interfaces::radio_goes_down_and_up),
        ("radio_is_deleted_and_made_again", interfaces::radio_is_deleted_and_made_again),
        ("interfaces_are_renamed", interfaces::interfaces_are_renamed),
        ("ping_over_1_hop", traffic::ping_over_1_hop),
        ("ping_over_1_hop_for_a_plain_user", || run_as_plain_user("e2e::ping_over_1_hop")),
        ("one_byte_more_than_the_mtu_is_refused", lengths::one_byte_more_than_the_mtu_is_refused),
        ("hosts_with_an_mtu_of_1500_need_no_setting", lengths::hosts_with_an_mtu_of_1500),
        ("senders_hear_of_packets_that_are_too_long", lengths::senders_hear_of_what_is_too_long),
        ("a_tap_stays_in_its_bridge", interfaces::a_tap_stays_in_its_bridge),
        (
            "a_prepared_tap_takes_no_right_to_change_it",
            interfaces::a_prepared_tap_takes_no_right_to_change_it,
        ),
        ("a_vehicle_asks_its_radio_what_was_acknowledged", radio_reports::a_vehicle_asks_its_radio),
        ("start_on_a_radio_that_is_down", interfaces::start_on_a_radio_that_is_down),
        ("start_without_a_radio", interfaces::start_without_a_radio),
        ("tap_vanishes", interfaces::tap_vanishes),
        ("impossible_mtu_is_refused", lengths::impossible_mtu_is_refused),
        (
            "a_source_of_signal_that_cannot_be_used",
            radio_reports::a_source_of_signal_that_cannot_be_used,
        ),
        ("a_monitor_is_deleted_and_made_again", radio_reports::a_monitor_is_deleted_and_made_again),
        ("check_finds_what_the_start_finds", checked_start::check_finds_what_the_start_finds),
        ("first_contact_names_what_is_wrong", warnings::first_contact_names_what_is_wrong),
        ("different_ethertypes_are_named", warnings::different_ethertypes_are_named),
        ("tagged_frames_are_named", warnings::tagged_frames_are_named),
        ("frames_that_are_too_long_are_named", warnings::frames_that_are_too_long_are_named),
        ("every_signal_ends_in_order", process::every_signal_ends_in_order_or_not_at_all),
        ("a_file_is_read_again", process::a_file_is_read_again),
        ("a_file_that_hangs_holds_up_nobody", process::a_file_that_hangs),
        ("a_supervisor_is_told", process::a_supervisor_is_told),
        ("daemons_outlive_their_log", process::daemons_outlive_their_log),
        ("root_gives_up_what_is_not_needed", privileges::root_gives_up_what_is_not_needed),
        ("daemons_run_under_their_units", under_unit::daemons_run_under_their_units),
    ],
};

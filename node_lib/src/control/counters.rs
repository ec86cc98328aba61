//! What a node counts: frames by direction and kind, drops by reason.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the start. Plain integers: a node runs on one thread.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Name and value of each counter, in a fixed order, for logs, metrics and JSON.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Control frames sent to the radio.
    ctl_tx_frames,
    /// Bytes in them, Ethernet header included.
    ctl_tx_bytes,
    /// Control frames heard on the radio, also those that are not believed.
    ctl_rx_frames,
    /// Bytes in them, Ethernet header included, padding not.
    ctl_rx_bytes,
    /// Heartbeats originated or relayed.
    heartbeat_tx,
    /// Heartbeats heard.
    heartbeat_rx,
    /// Heartbeats not relayed, because enough neighbours do.
    heartbeat_left,
    /// Heartbeat replies originated or forwarded.
    reply_tx,
    /// Heartbeat replies heard.
    reply_rx,
    /// Probes sent.
    probe_tx,
    /// Probes heard.
    probe_rx,
    /// Probe answers sent.
    answer_tx,
    /// Probe answers heard.
    answer_rx,
    /// Withdrawals and goodbyes sent.
    withdrawal_tx,
    /// Withdrawals and goodbyes heard.
    withdrawal_rx,
    /// Announcements originated or forwarded.
    announcement_tx,
    /// Announcements heard.
    announcement_rx,
    /// Announcement acknowledgements originated or forwarded.
    ack_tx,
    /// Announcement acknowledgements heard.
    ack_rx,
    /// Echoes sent or passed on, questions and answers.
    echo_tx,
    /// Echoes heard that were for this node.
    echo_rx,
    /// Frames taken from the TAP and sent to the radio.
    tap_to_wire,
    /// Frames taken from the radio and handed to the TAP.
    wire_to_tap,
    /// TCP connections asked to use segments that fit the radio.
    mss_clamped,
    /// Frames of clients not sent, because their senders were told that they are too long.
    too_big_told,
    /// Data messages sent in fragments, because the radio does not carry them in one frame.
    fragmented,
    /// Fragments sent.
    fragments_tx,
    /// Fragments received.
    fragments_rx,
    /// Data messages put together from fragments.
    reassembled,
    /// Data messages dropped: parts of them did not come in time.
    reassembly_timed_out,
    /// Data messages dropped: too many were waiting for parts.
    reassembly_evicted,
    /// Data frames relayed for others.
    relayed,
    /// Floods relayed for others.
    flood_relayed,
    /// Frames for or of an OBU that had gone to another RSU a moment before, passed on all the
    /// same.
    forwarded_late,
    /// Clients that moved too often and were held where they were for a while.
    clients_damped,
    /// Upstream changes, of any cause.
    upstream_changes,
    /// RSU changes, of any cause.
    rsu_changes,
    /// Changes of upstream or RSU that were settled: the number of gaps in `gap_sum_us`.
    hand_overs,
    /// Time clients were without a believed way, over all hand-overs, in microseconds.
    gap_sum_us,
    /// The longest of these, in microseconds.
    gap_max_us,
    /// Times the upstream was in doubt, so that frames went another way as well.
    upstream_doubted,
    /// Data frames sent another way as well.
    sent_twice,
    /// Data frames sent once more, because the radio gave them up.
    sent_again,
    /// Data frames that went another way as well, because the next hop they were given to was lost.
    rerouted,
    /// Upstreams given up because they fell silent.
    upstream_dead,
    /// Frames dropped: not one of ours, malformed, or of another version.
    drop_malformed,
    /// Frames dropped: unicast to another node's MAC, or our own coming back.
    drop_foreign,
    /// Frames dropped: seen before, or perhaps, by the start of this node before: those that were
    /// given to another next hop first, or that a later one has overtaken.
    drop_duplicate,
    /// Frames dropped: hop limit used up.
    drop_hop_limit,
    /// Frames dropped: no route to where they should go.
    drop_no_route,
    /// Frames dropped: larger than the radio carries, in fragments too.
    drop_oversize,
    /// Frames dropped: inner frame no bridge may forward (bad source, link-local group, too short).
    drop_inner,
    /// Frames dropped: a client's own frame coming back, or not meant to leave this port.
    drop_reflected,
    /// Floods dropped: budget for unknown destinations, or for broadcast and multicast, used up.
    drop_flood_limit,
    /// Floods dropped: they may have waited in the TAP for so long, while the radio was full, that
    /// an OBU could not tell whether another RSU has brought them already.
    drop_flood_late,
    /// Data frames dropped: from OBUs that have not announced themselves there were too many.
    drop_strangers,
    /// Frames dropped: this node listens after a restart and does not route yet.
    drop_quiet,
    /// Frames ignored: they contradict who is alive and well, and nothing has confirmed them yet.
    drop_doubtful,
    /// Frames dropped: replies that would have gone out faster than allowed.
    drop_rate_limit,
    /// Echoes dropped: more than may be answered or passed on.
    drop_echo_limit,
    /// Echoes dropped: answers nobody waits for, or for whom this node is not on the path.
    drop_echo_stray,
    /// Table entries evicted because a table was full.
    evicted,
    /// Events lost because nobody read them.
    events_lost,
    /// Clients of which an RSU's LAN was not told, or less often than others, because there were
    /// too many.
    wired_limited,
    /// Events not reported, because there were too many of their kind.
    events_limited,
    /// Words of OBUs that an RSU ignored: with them two OBUs would be behind each other.
    edges_refused,
    /// Frames and announcements of clients that are pinned elsewhere: they moved nothing.
    pins_held,
    /// Announcements of OBUs for which an RSU had no room.
    obus_refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_listed_under_its_name() {
        let counters = Counters { relayed: 7, ..Counters::default() };
        let listed: Vec<_> = counters.iter().filter(|(_, value)| *value != 0).collect();
        assert_eq!(listed, [("relayed", 7)]);
    }
}

//! Control plane of the OBU: which RSU, via whom, and what happens when that ends.
//!
//! # The life of an OBU
//!
//! **Start.** It knows nobody, asks the neighbourhood with a broadcast probe, and listens. For a
//! quiet period of 3.5 heartbeat intervals it uses only an RSU it hears directly, and routes for
//! nobody. It has forgotten what it advertised before the restart, and neighbours may still send
//! through it on the strength of that.
//!
//! **Candidates.** Every heartbeat, relayed or not, and every answer to a probe says how far its
//! sender is from an RSU. A neighbour is a *candidate* when what it says is *feasible* (better than
//! anything this OBU ever advertised for that RSU, RFC 8966 §2.4), and fresh. It must also have
//! proven that it hears us by answering a probe or by naming us as its upstream.
//!
//! **Attachment.** Per RSU the best candidate is the *upstream*: the one of least expected
//! transmissions, then fewest hops, then lowest id. The OBU attaches to the RSU with the best
//! upstream and announces its clients there with a new epoch, until acknowledged. Heartbeats its
//! upstream brings are relayed once each, after a short random wait; relaying one binds the OBU to
//! the distance it advertised.
//!
//! **Doubtful words.** One frame that contradicts what is alive and well is ignored: another boot
//! count of a neighbour or of an RSU, a jump in its heartbeats, another interval, another number of
//! OBUs. It needs a second witness, or the silence of what it contradicts; `route/count.rs`,
//! `route/headcount.rs` and [`crate::control::link::neighbour`] say which. When an RSU's count goes
//! *back*, the OBU forgets what it advertised and begins anew for that RSU, as after a restart.
//!
//! **Steady state.** Once a second a reply names the upstream and lets the RSU compare client sets
//! by digest. The upstream and the best candidates are probed about as often, so that a candidate
//! is known to work before it is needed. Silence of 1.2 intervals, or data sent for as long without
//! proof that it arrives, makes the OBU ask its upstream.
//!
//! **Crowd.** From 16 OBUs at an RSU on, few relay its heartbeats, and replies and probes become
//! rarer. An OBU whose clients are still watches its upstream less closely and has patience: it
//! asks one neighbour after the other. `route/suppression.rs`, `budget.rs` and `timing.rs` say how.
//!
//! **The next RSU.** While another RSU is nearly as good as ours, is becoming better, or ours will
//! not last, it is told that we may come (*standby*): announced until acknowledged, then reminded
//! now and then. It keeps our clients and the way to us, owns nothing and tells its LAN nothing.
//!
//! **Doubt.** An upstream that left three questions unanswered is in doubt. For that moment frames
//! of our own clients go through the best other candidate to the same RSU as well, which drops the
//! second copy, and a reply names it as upstream. 64 KiB or three intervals end it. Frames of
//! others are not doubled.
//!
//! **Change.** Two doors. *Dead* (seven questions and 2.25 intervals without an answer),
//! *withdrawn* and *restarted* switch at once to the best usable candidate, of the same RSU or of
//! another. The others happen while the old way still works, and never right after another change.
//! *Better* needs a margin and three seconds. *Fading* needs that heartbeats stay away more than
//! they used to, a strong alternative, and that no radio tells signals. *Predicted* needs that
//! another comes in clearly stronger and the trend says it will. *Goodbye* needs an alternative.
//! Such a change to another RSU waits until that one expects us, for 300 ms at most.
//!
//! **Hand-over.** From the change on frames go up the new way. What still comes from the old RSU is
//! taken: frames for us at any time, floods for 300 ms, compared by content so that each is
//! delivered once. 300 ms after the new RSU has acknowledged, the old one is told that we left, and
//! a record says what the change cost ([`node_lib::control::event::HandOver`]).
//!
//! **Loss.** Without a usable candidate the OBU withdraws what it advertised, three times, so that
//! those behind it move on at once; it asks the neighbourhood again and takes the next feasible
//! news.
//!
//! **Stop.** It says goodbye, three times, and forwards for another 200 ms what is under way.

mod config;
pub mod control;
mod policy;
pub mod settings;
mod thresholds;

pub use config::Config;
pub use control::node::Obu;
pub use policy::{Policy, Ranking};
pub use settings::Settings;
pub use thresholds::Thresholds;

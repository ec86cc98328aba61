//! Namespaces, a radio medium and the real daemons: the ground on which the demo, the end-to-end
//! tests and the system benches run.
//!
//! A program [enters](arena::enter) the arena first, then builds a [`Testbed`]: hosts on a LAN,
//! road-side units, vehicles, and who hears whom. [`probe`] sends traffic and counts.
//!
//! | module | what is in it |
//! |---|---|
//! | [`arena`] | namespaces, interfaces, raw sockets: where everything runs |
//! | [`medium`] | the radio: who hears whom, and how well |
//! | [`daemons`] | `obu` and `rsu` as processes |
//! | [`topology`] | road-side units, vehicles and hosts put together |
//! | [`probe`] | traffic, and what became of it |
//! | [`scenes`] | `testbed demo`, `corridor`, `page` |
//! | [`endurance`] | `testbed soak`, `days`, `restarts` |
//! | [`mod@bench`] | `testbed bench`, `mtu`, `http` |
//! | `screen`, `wait` | what is printed; waiting for what others bring about |

pub mod arena;
pub mod bench;
pub mod daemons;
pub mod endurance;
pub mod medium;
pub mod probe;
pub mod scenes;
mod screen;
pub mod topology;
mod wait;

pub use arena::netns::Netns;
pub use arena::sys::{PromiscuousSocket, asks_for_acknowledgements};
pub use daemons::programs::Programs;
pub use medium::Quality;
pub use topology::world::{
    ATTACHMENT_CHANGED, Cabin, HAND_OVER_DONE, Host, LOGS, MONITOR, Testbed, TestbedNode,
};
pub use wait::wait_until;

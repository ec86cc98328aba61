//! Traffic with a memory: what was sent, what arrived, how often, and the longest silence.

mod flood;
mod frames;
pub mod http;
mod iperf3;
mod ping;
mod pulse;
mod streams;
mod tally;
mod tcp;
mod udp;
mod wrk;

pub use flood::{FloodReport, flood};
pub use frames::{FrameReceiver, NumberedFrame, PROBE_ETHERTYPE, send_frames, send_raw};
pub use iperf3::{Iperf3, Iperf3Report};
pub use ping::{PingReport, PingStream};
pub use pulse::{Doubled, Outage, Pulse, Totals};
pub use streams::{Endpoint, Stream, StreamLog, Streams, StreamsReport};
pub use tally::{StreamReport, StreamTally};
pub use tcp::{TcpReport, transfer};
pub use udp::UdpStream;
pub use wrk::Wrk;

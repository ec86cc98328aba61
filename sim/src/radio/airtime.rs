//! How long a frame occupies the channel: IEEE Std 802.11-2020 clause 17 with 10 MHz channels, as
//! 802.11p uses them.

use std::time::Duration;

/// Data rates of a 10 MHz channel (table 17-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataRate {
    /// 3 Mbit/s: BPSK, code rate 1/2.
    Mbps3,
    /// 4.5 Mbit/s: BPSK, 3/4.
    Mbps4_5,
    /// 6 Mbit/s: QPSK, 1/2. What safety messages are sent with.
    #[default]
    Mbps6,
    /// 9 Mbit/s: QPSK, 3/4.
    Mbps9,
    /// 12 Mbit/s: 16-QAM, 1/2.
    Mbps12,
    /// 18 Mbit/s: 16-QAM, 3/4.
    Mbps18,
    /// 24 Mbit/s: 64-QAM, 2/3.
    Mbps24,
    /// 27 Mbit/s: 64-QAM, 3/4.
    Mbps27,
}

/// Modulation of each subcarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// One bit a symbol.
    Bpsk,
    /// Two.
    Qpsk,
    /// Four.
    Qam16,
    /// Six.
    Qam64,
}

/// Rate of the convolutional code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRate {
    /// 1/2.
    Half,
    /// 2/3, by puncturing.
    TwoThirds,
    /// 3/4, by puncturing.
    ThreeQuarters,
}

impl DataRate {
    /// The lowest, at which everyone must be able to send and receive. The header of every frame
    /// goes at it.
    pub const LOWEST: Self = Self::Mbps3;

    /// All of them, the lowest first.
    pub const ALL: [Self; 8] = [
        Self::Mbps3,
        Self::Mbps4_5,
        Self::Mbps6,
        Self::Mbps9,
        Self::Mbps12,
        Self::Mbps18,
        Self::Mbps24,
        Self::Mbps27,
    ];

    /// How bits become symbols.
    pub const fn modulation(self) -> Modulation {
        match self {
            Self::Mbps3 | Self::Mbps4_5 => Modulation::Bpsk,
            Self::Mbps6 | Self::Mbps9 => Modulation::Qpsk,
            Self::Mbps12 | Self::Mbps18 => Modulation::Qam16,
            Self::Mbps24 | Self::Mbps27 => Modulation::Qam64,
        }
    }

    /// What is left of them for data.
    pub const fn code_rate(self) -> CodeRate {
        match self {
            Self::Mbps3 | Self::Mbps6 | Self::Mbps12 => CodeRate::Half,
            Self::Mbps24 => CodeRate::TwoThirds,
            Self::Mbps4_5 | Self::Mbps9 | Self::Mbps18 | Self::Mbps27 => CodeRate::ThreeQuarters,
        }
    }

    /// N_DBPS: data bits in one OFDM symbol.
    pub const fn bits_per_symbol(self) -> u64 {
        match self {
            Self::Mbps3 => 24,
            Self::Mbps4_5 => 36,
            Self::Mbps6 => 48,
            Self::Mbps9 => 72,
            Self::Mbps12 => 96,
            Self::Mbps18 => 144,
            Self::Mbps24 => 192,
            Self::Mbps27 => 216,
        }
    }

    /// The rate of an acknowledgement: the highest mandatory one (3, 6, 12 Mbit/s) that is not
    /// above the rate of the data (10.6.6.5.2).
    pub const fn of_ack(self) -> Self {
        match self {
            Self::Mbps3 | Self::Mbps4_5 => Self::Mbps3,
            Self::Mbps6 | Self::Mbps9 => Self::Mbps6,
            _ => Self::Mbps12,
        }
    }

    /// How long `mac_len` bytes, from MAC header to checksum, occupy the channel.
    pub const fn airtime(self, mac_len: u64) -> Duration {
        let symbols = Self::payload_bits(mac_len).div_ceil(self.bits_per_symbol());
        Duration::from_micros(PREAMBLE_US + SIGNAL_US + SYMBOL_US * symbols)
    }

    /// Bits of so many bytes, from MAC header to checksum, as they are coded.
    pub(super) const fn payload_bits(mac_len: u64) -> u64 {
        SERVICE_BITS + 8 * mac_len + TAIL_BITS
    }

    /// How long an Ethernet frame of `len` bytes, its header included, occupies the channel: the
    /// header is replaced by that of 802.11 and by LLC/SNAP, and a checksum is added.
    pub const fn airtime_of_ethernet(self, len: usize) -> Duration {
        self.airtime(mac_len(len))
    }

    /// How long the acknowledgement of a frame at this rate occupies the channel.
    pub const fn airtime_of_ack(self) -> Duration {
        self.of_ack().airtime(ACK_LEN)
    }
}

/// Bytes from MAC header to checksum of an Ethernet frame of so many, its header included.
pub(crate) const fn mac_len(ethernet_len: usize) -> u64 {
    (ethernet_len as u64).saturating_sub(ETHERNET_HEADER_LEN) + MAC_OVERHEAD
}

/// Times of a 10 MHz channel in microseconds (tables 17-5 and 17-21).
pub(super) const PREAMBLE_US: u64 = 32;
pub(super) const SIGNAL_US: u64 = 8;
pub(super) const SYMBOL_US: u64 = 8;

/// aSlotTime.
pub const SLOT: Duration = Duration::from_micros(13);

/// aSIFSTime: between a frame and its acknowledgement.
pub const SIFS: Duration = Duration::from_micros(32);

/// aCCATime, at most: who starts within this time of another has not noticed it.
pub const CCA_TIME: Duration = Duration::from_micros(8);

const SERVICE_BITS: u64 = 16;
const TAIL_BITS: u64 = 6;

/// Header of a QoS data frame, LLC/SNAP, checksum. The header has three addresses, for there is no
/// access point, and the QoS control field, for there are access categories. These are 2 bytes of
/// frame control, 2 of duration, 18 of addresses, 2 of sequence control, 2 of QoS control
/// (9.3.2.1).
const MAC_OVERHEAD: u64 = 26 + 8 + 4;

const ETHERNET_HEADER_LEN: u64 = 14;

/// Bytes of an acknowledgement: frame control, duration, receiver, checksum (9.3.1.4).
const ACK_LEN: u64 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// By hand: 88 bytes are 16 + 704 + 6 = 726 bits, 15.1 symbols of 48 bits, so 16 of 8 µs, after
    /// 40 µs; 1,536 bytes are 12,310 bits, 256.5 symbols, so 257.
    #[test]
    fn airtime_is_what_the_standard_says() {
        assert_eq!(DataRate::Mbps6.airtime(88), us(168));
        assert_eq!(DataRate::Mbps6.airtime(1536), us(2096));
        assert_eq!(DataRate::Mbps3.airtime(88), us(40 + 8 * 31));
        assert_eq!(DataRate::Mbps27.airtime(88), us(40 + 8 * 4));
        // Exactly full symbols: (16 + 8·len + 6) = 24·n has no whole solution at 6; at 3, len
        // 1: 30.
        assert_eq!(DataRate::Mbps3.airtime(1), us(40 + 8 * 2));
    }

    #[test]
    fn an_ethernet_frame_gets_the_headers_of_the_radio() {
        // A heartbeat of 62 bytes: 48 of payload, 86 on air, 710 bits, 15 symbols.
        assert_eq!(DataRate::Mbps6.airtime_of_ethernet(62), us(160));
        // 64 bytes: 88 on air, 726 bits, 16 symbols; with a header of 24 bytes it would be 15.
        assert_eq!(DataRate::Mbps6.airtime_of_ethernet(64), us(168));
        // 1,538 bytes are 12,326 bits, 256.8 symbols.
        assert_eq!(DataRate::Mbps6.airtime_of_ethernet(1514), us(2096));
    }

    /// 14 bytes are 134 bits: 3 symbols at 6 Mbit/s, 6 at 3, 2 at 12.
    #[test]
    fn acknowledgements_go_at_a_mandatory_rate() {
        assert_eq!(DataRate::Mbps6.airtime_of_ack(), us(64));
        assert_eq!(DataRate::Mbps9.airtime_of_ack(), us(64));
        assert_eq!(DataRate::Mbps4_5.airtime_of_ack(), us(88));
        assert_eq!(DataRate::Mbps27.airtime_of_ack(), us(56));
    }
}

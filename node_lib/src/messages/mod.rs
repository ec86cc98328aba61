//! Every frame on the radio: one documented format per file.

/// EtherType of our frames unless the operator chooses another: IEEE 802 local experimental 1
/// (IEEE 802-2014 §9.2.4).
pub const ETHERTYPE_DEFAULT: u16 = 0x88b5;

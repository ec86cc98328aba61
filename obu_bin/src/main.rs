//! The OBU daemon.
fn main() {}

//! The RSU daemon.
fn main() {}

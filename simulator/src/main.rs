//! `v2xsim`.
fn main() {}

//! The tree of upstreams: which way answers and frames take down to an OBU, which words change it,
//! and which do not.

mod again;
mod asking;
mod doubtful;
mod floods;
mod leaving;
mod room;
mod seen;
mod telling;
mod tree;

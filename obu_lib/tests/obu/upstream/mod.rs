//! Through whom an OBU sends: how closely it watches its upstream, and when it prefers another one.

mod asking;
mod beats;
mod better;
mod leaving;
mod speaking;

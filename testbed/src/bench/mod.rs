//! What is measured: the data path, hosts that know nothing of a smaller MTU, HTTP.

pub mod data_path;
pub mod http;
pub mod mtu;

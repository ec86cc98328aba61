//! What an OBU runs with: what the operator decides, [`Settings`], and what its start finds.

use node_lib::{Mac, Start};

use crate::Settings;

/// What one OBU runs with; made by [`Settings::config`].
#[derive(Clone, Debug)]
pub struct Config {
    /// What its start found: who it is, its interfaces.
    pub start: Start,
    /// What the operator decides.
    pub settings: Settings,
}

impl Config {
    /// The first start of a node with this radio and default settings.
    pub fn new(radio_mac: Mac) -> Self {
        Settings::default().config(&Start::new(radio_mac))
    }
}

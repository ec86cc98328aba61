//! What an RSU runs with: what the operator decides, [`Settings`], and what its start finds.

use node_lib::{Mac, Start};

use crate::Settings;

/// What one RSU runs with; made by [`Settings::config`].
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

impl Settings {
    /// What an RSU with these settings runs with after this start: in a daemon and in a simulation.
    pub fn config(&self, start: &Start) -> Config {
        Config { start: *start, settings: self.clone() }
    }
}

//! Names of the things in a world, in the order they were added.

use std::fmt;

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident($of:ty) $letter:literal,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(pub $of);

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, concat!($letter, "{}"), self.0)
                }
            }
        )*
    };
}

index! {
    /// A node; shown as `n0`, `n1`, …
    NodeIndex(usize) "n",
    /// A client: an address behind a TAP or on a LAN.
    ClientIndex(usize) "c",
    /// A flow of numbered frames.
    FlowIndex(u32) "f",
    /// A LAN.
    LanIndex(usize) "l",
}

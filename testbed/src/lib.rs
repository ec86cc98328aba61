//! Namespaces, radios and real daemons.

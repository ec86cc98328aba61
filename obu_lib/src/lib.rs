//! Control plane of the OBU.

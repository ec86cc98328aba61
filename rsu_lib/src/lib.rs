//! Control plane of the RSU.

//! What a world keeps its nodes as: [`Guest`].

use std::any::Any;

use node_lib::control::node::Node;

/// A node that can live in a [`World`](crate::World): any [`Node`] that owns all it has, and may go
/// to another thread with its world. There is nothing to implement.
pub trait Guest: Node + Any + Send {}

impl<N: Node + Any + Send> Guest for N {}

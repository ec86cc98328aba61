//! Every `unsafe` of this crate: functions of C over the methods of [`v2x_node`].
//!
//! Enumerations come in as numbers, because a value that is none of an enumeration's would already
//! be undefined behaviour in Rust.

use crate::{v2x_attachment, v2x_error, v2x_frame, v2x_node, v2x_start};
use node_lib::Timestamp;

/// Makes a node that starts at this time, in microseconds since whatever start the caller chose;
/// `role` is one of `v2x_role`. Null if a value is wrong: a MAC that is no unicast address, an MTU
/// below 576. `v2x_free()` ends it.
///
/// # Safety
///
/// `start` points to a `v2x_start` or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_new(role: u32, start: *const v2x_start, now_us: u64) -> *mut v2x_node {
    // SAFETY: the caller promises it.
    let Some(start) = (unsafe { start.as_ref() }) else { return std::ptr::null_mut() };
    match v2x_node::new(role, start, Timestamp::from_micros(now_us)) {
        Ok(node) => Box::into_raw(Box::new(node)),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Ends a node without a goodbye: see `v2x_shutdown()`. Null is let pass.
///
/// # Safety
///
/// `node` is from `v2x_new()` and not used afterwards, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_free(node: *mut v2x_node) {
    if !node.is_null() {
        // SAFETY: the caller promises that it is ours and nobody else's.
        drop(unsafe { Box::from_raw(node) });
    }
}

/// A whole Ethernet frame came in through `interface`, one of `v2x_interface`. Malformed ones are
/// counted by the node and dropped. Time must not go back.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null; `bytes` points to `len` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_handle_frame(
    node: *mut v2x_node,
    now_us: u64,
    interface: u32,
    bytes: *const u8,
    len: usize,
) -> v2x_error {
    // SAFETY: the caller promises it.
    let Some(node) = (unsafe { node.as_mut() }) else { return v2x_error::Null };
    if bytes.is_null() {
        return v2x_error::Null;
    }
    if isize::try_from(len).is_err() {
        return v2x_error::Value;
    }
    // SAFETY: the caller promises `len` bytes, and no slice is longer than an `isize`.
    node.handle(now_us, interface, unsafe { std::slice::from_raw_parts(bytes, len) })
}

/// The time has come that `v2x_next_timeout()` named. Coming early is harmless.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_handle_timeout(node: *mut v2x_node, now_us: u64) -> v2x_error {
    // SAFETY: the caller promises it.
    let Some(node) = (unsafe { node.as_mut() }) else { return v2x_error::Null };
    node.drive(now_us, |node, now, out| node.handle_timeout(now, out))
}

/// Something happened to an interface; `event` is one of `v2x_link_event`.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_handle_link(
    node: *mut v2x_node,
    now_us: u64,
    event: u32,
) -> v2x_error {
    // SAFETY: the caller promises it.
    let Some(node) = (unsafe { node.as_mut() }) else { return v2x_error::Null };
    node.link(now_us, event)
}

/// In the last second the radio's channel was busy for so many per cent of the time, 0 to 100. An
/// RSU on a full channel sends its heartbeats rarer. Where the radio tells, about once a second.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_handle_channel_busy(
    node: *mut v2x_node,
    now_us: u64,
    percent: u32,
) -> v2x_error {
    // SAFETY: the caller promises it.
    let Some(node) = (unsafe { node.as_mut() }) else { return v2x_error::Null };
    node.channel_busy(now_us, percent)
}

/// The node will stop, and says goodbye. It should be driven on for `linger_us` microseconds, which
/// may be null.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null; `linger_us` points to a `uint64_t` or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_shutdown(
    node: *mut v2x_node,
    now_us: u64,
    linger_us: *mut u64,
) -> v2x_error {
    // SAFETY: the caller promises it.
    let Some(node) = (unsafe { node.as_mut() }) else { return v2x_error::Null };
    if !linger_us.is_null() {
        let linger = u64::try_from(node.linger().as_micros()).unwrap_or(u64::MAX);
        // SAFETY: it is not null, and the caller promises that it points to a `uint64_t`.
        unsafe { linger_us.write(linger) };
    }
    node.shutdown(now_us)
}

/// When the node next has something to do by itself. `V2X_ERROR_NOTHING`: never. It may change with
/// every call.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null; `at_us` points to a `uint64_t` or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_next_timeout(node: *const v2x_node, at_us: *mut u64) -> v2x_error {
    // SAFETY: the caller promises it.
    let Some(node) = (unsafe { node.as_ref() }) else { return v2x_error::Null };
    if at_us.is_null() {
        return v2x_error::Null;
    }
    let Some(next) = node.node().poll_timeout() else { return v2x_error::Nothing };
    // SAFETY: it is not null, and the caller promises that it points to a `uint64_t`.
    unsafe { at_us.write(next.as_micros()) };
    v2x_error::Ok
}

/// The next frame to be sent, in order, until there is none: `V2X_ERROR_NOTHING`. Its bytes are
/// there until the next call with this node.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null; `frame` points to a `v2x_frame` or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_take_frame(node: *mut v2x_node, frame: *mut v2x_frame) -> v2x_error {
    // SAFETY: the caller promises it. What `frame` points to may be without a value yet.
    let Some(node) = (unsafe { node.as_mut() }) else { return v2x_error::Null };
    if frame.is_null() {
        return v2x_error::Null;
    }
    let Some((interface, bytes)) = node.take_frame() else { return v2x_error::Nothing };
    let taken = v2x_frame { interface, bytes: bytes.as_ptr(), len: bytes.len() };
    // SAFETY: it is not null, and the caller promises that it points to a `v2x_frame`.
    unsafe { frame.write(taken) };
    v2x_error::Ok
}

/// Which RSU an OBU uses. `V2X_ERROR_NOTHING`: none, or the node is an RSU.
///
/// # Safety
///
/// `node` is from `v2x_new()` or null; `attachment` points to a `v2x_attachment` or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn v2x_attached(
    node: *const v2x_node,
    attachment: *mut v2x_attachment,
) -> v2x_error {
    // SAFETY: the caller promises it.
    let Some(node) = (unsafe { node.as_ref() }) else { return v2x_error::Null };
    if attachment.is_null() {
        return v2x_error::Null;
    }
    let Some(attached) = node.attachment() else { return v2x_error::Nothing };
    // SAFETY: it is not null, and the caller promises that it points to a `v2x_attachment`.
    unsafe { attachment.write(attached) };
    v2x_error::Ok
}

/* OBUs and RSUs without I/O, for programs in C and C++. Made from capi/src/lib.rs: change that.
 *
 * A node is a state machine. It reads no clock and no socket: the caller says what time it is, hands
 * over frames, takes what the node wants sent, and comes back when v2x_next_timeout() says so.
 * examples/two_nodes.c is a whole program. */

#ifndef V2X_H
#define V2X_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 What a call came to.
 */
typedef enum v2x_error {
  /*
   It worked.
   */
  V2X_ERROR_OK = 0,
  /*
   There is nothing of what was asked for.
   */
  V2X_ERROR_NOTHING = 1,
  /*
   A pointer is null that may not be.
   */
  V2X_ERROR_NULL = 2,
  /*
   A value is none of those that are allowed, or time went back.
   */
  V2X_ERROR_VALUE = 3,
} v2x_error;

/*
 Which of a node's two interfaces.
 */
typedef enum v2x_interface {
  /*
   The one other nodes hear.
   */
  V2X_INTERFACE_RADIO = 0,
  /*
   The one clients are behind.
   */
  V2X_INTERFACE_TAP = 1,
} v2x_interface;

/*
 What a node is.
 */
typedef enum v2x_role {
  /*
   In a vehicle.
   */
  V2X_ROLE_OBU = 0,
  /*
   At the road side.
   */
  V2X_ROLE_RSU = 1,
} v2x_role;

/*
 Something happened to an interface.
 */
typedef enum v2x_link_event {
  /*
   The radio can send and receive (again).
   */
  V2X_LINK_EVENT_RADIO_UP = 0,
  /*
   The radio cannot.
   */
  V2X_LINK_EVENT_RADIO_DOWN = 1,
  /*
   What is written to the TAP arrives (again).
   */
  V2X_LINK_EVENT_TAP_UP = 2,
  /*
   What is written to the TAP is lost.
   */
  V2X_LINK_EVENT_TAP_DOWN = 3,
} v2x_link_event;

/*
 An OBU or an RSU.
 */
typedef struct v2x_node v2x_node;

/*
 What one start of a node finds. All zero but `mac` is the first start of a node with that radio.
 */
typedef struct v2x_start {
  /*
   MAC of the radio; also the node's id.
   */
  uint8_t mac[6];
  /*
   MAC of the node's own TAP; all zero: it has none.
   */
  uint8_t tap_mac[6];
  /*
   Largest Ethernet payload the radio carries, in bytes, at least 576; 0: 1500.
   */
  uint32_t mtu;
  /*
   Boot count, higher than that of any start before; 0: 1.
   */
  uint32_t boot;
  /*
   Seed of everything random in the node, unlike that of any other; 0: made from `mac`.
   */
  uint64_t seed;
} v2x_start;

/*
 A frame the node wants sent.
 */
typedef struct v2x_frame {
  /*
   Through which interface.
   */
  enum v2x_interface interface;
  /*
   The whole Ethernet frame, until the next call with this node.
   */
  const uint8_t *bytes;
  /*
   Bytes of it.
   */
  size_t len;
} v2x_frame;

/*
 Which RSU an OBU uses, and through whom.
 */
typedef struct v2x_attachment {
  /*
   The RSU.
   */
  uint8_t rsu[6];
  /*
   The neighbour frames go to.
   */
  uint8_t upstream[6];
  /*
   Radio hops to the RSU.
   */
  uint8_t hops;
} v2x_attachment;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes a node that starts at this time, in microseconds since whatever start the caller chose;
 `role` is one of `v2x_role`. Null if a value is wrong: a MAC that is no unicast address, an MTU
 below 576. `v2x_free()` ends it.

 # Safety

 `start` points to a `v2x_start` or is null.
 */
struct v2x_node *v2x_new(uint32_t role, const struct v2x_start *start, uint64_t now_us);

/*
 Ends a node without a goodbye: see `v2x_shutdown()`. Null is let pass.

 # Safety

 `node` is from `v2x_new()` and not used afterwards, or null.
 */
void v2x_free(struct v2x_node *node);

/*
 A whole Ethernet frame came in through `interface`, one of `v2x_interface`. Malformed ones are
 counted by the node and dropped. Time must not go back.

 # Safety

 `node` is from `v2x_new()` or null; `bytes` points to `len` bytes or is null.
 */
enum v2x_error v2x_handle_frame(struct v2x_node *node,
                                uint64_t now_us,
                                uint32_t interface,
                                const uint8_t *bytes,
                                size_t len);

/*
 The time has come that `v2x_next_timeout()` named. Coming early is harmless.

 # Safety

 `node` is from `v2x_new()` or null.
 */
enum v2x_error v2x_handle_timeout(struct v2x_node *node, uint64_t now_us);

/*
 Something happened to an interface; `event` is one of `v2x_link_event`.

 # Safety

 `node` is from `v2x_new()` or null.
 */
enum v2x_error v2x_handle_link(struct v2x_node *node, uint64_t now_us, uint32_t event);

/*
 In the last second the radio's channel was busy for so many per cent of the time, 0 to 100. An
 RSU on a full channel sends its heartbeats rarer. Where the radio tells, about once a second.

 # Safety

 `node` is from `v2x_new()` or null.
 */
enum v2x_error v2x_handle_channel_busy(struct v2x_node *node, uint64_t now_us, uint32_t percent);

/*
 The node will stop, and says goodbye. It should be driven on for `linger_us` microseconds, which
 may be null.

 # Safety

 `node` is from `v2x_new()` or null; `linger_us` points to a `uint64_t` or is null.
 */
enum v2x_error v2x_shutdown(struct v2x_node *node, uint64_t now_us, uint64_t *linger_us);

/*
 When the node next has something to do by itself. `V2X_ERROR_NOTHING`: never. It may change with
 every call.

 # Safety

 `node` is from `v2x_new()` or null; `at_us` points to a `uint64_t` or is null.
 */
enum v2x_error v2x_next_timeout(const struct v2x_node *node, uint64_t *at_us);

/*
 The next frame to be sent, in order, until there is none: `V2X_ERROR_NOTHING`. Its bytes are
 there until the next call with this node.

 # Safety

 `node` is from `v2x_new()` or null; `frame` points to a `v2x_frame` or is null.
 */
enum v2x_error v2x_take_frame(struct v2x_node *node, struct v2x_frame *frame);

/*
 Which RSU an OBU uses. `V2X_ERROR_NOTHING`: none, or the node is an RSU.

 # Safety

 `node` is from `v2x_new()` or null; `attachment` points to a `v2x_attachment` or is null.
 */
enum v2x_error v2x_attached(const struct v2x_node *node, struct v2x_attachment *attachment);

/*
 Makes a node that starts at this time, in microseconds since whatever start the caller chose;
 `role` is one of `v2x_role`. Null if a value is wrong: a MAC that is no unicast address, an MTU
 below 576. `v2x_free()` ends it.

 # Safety

 `start` points to a `v2x_start` or is null.
 */
struct v2x_node *v2x_new(uint32_t role, const struct v2x_start *start, uint64_t now_us);

/*
 Ends a node without a goodbye: see `v2x_shutdown()`. Null is let pass.

 # Safety

 `node` is from `v2x_new()` and not used afterwards, or null.
 */
void v2x_free(struct v2x_node *node);

/*
 A whole Ethernet frame came in through `interface`, one of `v2x_interface`. Malformed ones are
 counted by the node and dropped. Time must not go back.

 # Safety

 `node` is from `v2x_new()` or null; `bytes` points to `len` bytes or is null.
 */
enum v2x_error v2x_handle_frame(struct v2x_node *node,
                                uint64_t now_us,
                                uint32_t interface,
                                const uint8_t *bytes,
                                size_t len);

/*
 The time has come that `v2x_next_timeout()` named. Coming early is harmless.

 # Safety

 `node` is from `v2x_new()` or null.
 */
enum v2x_error v2x_handle_timeout(struct v2x_node *node, uint64_t now_us);

/*
 Something happened to an interface; `event` is one of `v2x_link_event`.

 # Safety

 `node` is from `v2x_new()` or null.
 */
enum v2x_error v2x_handle_link(struct v2x_node *node, uint64_t now_us, uint32_t event);

/*
 In the last second the radio's channel was busy for so many per cent of the time, 0 to 100. An
 RSU on a full channel sends its heartbeats rarer. Where the radio tells, about once a second.

 # Safety

 `node` is from `v2x_new()` or null.
 */
enum v2x_error v2x_handle_channel_busy(struct v2x_node *node, uint64_t now_us, uint32_t percent);

/*
 The node will stop, and says goodbye. It should be driven on for `linger_us` microseconds, which
 may be null.

 # Safety

 `node` is from `v2x_new()` or null; `linger_us` points to a `uint64_t` or is null.
 */
enum v2x_error v2x_shutdown(struct v2x_node *node, uint64_t now_us, uint64_t *linger_us);

/*
 When the node next has something to do by itself. `V2X_ERROR_NOTHING`: never. It may change with
 every call.

 # Safety

 `node` is from `v2x_new()` or null; `at_us` points to a `uint64_t` or is null.
 */
enum v2x_error v2x_next_timeout(const struct v2x_node *node, uint64_t *at_us);

/*
 The next frame to be sent, in order, until there is none: `V2X_ERROR_NOTHING`. Its bytes are
 there until the next call with this node.

 # Safety

 `node` is from `v2x_new()` or null; `frame` points to a `v2x_frame` or is null.
 */
enum v2x_error v2x_take_frame(struct v2x_node *node, struct v2x_frame *frame);

/*
 Which RSU an OBU uses. `V2X_ERROR_NOTHING`: none, or the node is an RSU.

 # Safety

 `node` is from `v2x_new()` or null; `attachment` points to a `v2x_attachment` or is null.
 */
enum v2x_error v2x_attached(const struct v2x_node *node, struct v2x_attachment *attachment);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* V2X_H */

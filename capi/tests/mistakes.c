/* Returns the line of the first thing that is not as it should be. */
#include <string.h>

#include "v2x.h"

#define EXPECT(condition)                                                                          \
    if (!(condition)) return __LINE__ % 256

int main(void) {
    v2x_start start = {.mac = {2, 0, 0, 0, 0, 1}};
    uint64_t at = 0;
    v2x_frame frame;
    v2x_attachment attachment;
    uint8_t noise[600];
    memset(noise, 0xa5, sizeof noise);

    EXPECT(v2x_new(V2X_ROLE_OBU, NULL, 0) == NULL);
    EXPECT(v2x_new(2, &start, 0) == NULL);
    v2x_start wrong = {.mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    EXPECT(v2x_new(V2X_ROLE_OBU, &wrong, 0) == NULL);
    wrong = start;
    wrong.mtu = 575;
    EXPECT(v2x_new(V2X_ROLE_OBU, &wrong, 0) == NULL);
    wrong = start;
    wrong.tap_mac[0] = 1;
    EXPECT(v2x_new(V2X_ROLE_RSU, &wrong, 0) == NULL);
    v2x_free(NULL);

    v2x_node *node = v2x_new(V2X_ROLE_OBU, &start, 1000);
    EXPECT(node != NULL);
    EXPECT(v2x_handle_timeout(NULL, 1000) == V2X_ERROR_NULL);
    EXPECT(v2x_handle_timeout(node, 999) == V2X_ERROR_VALUE);
    EXPECT(v2x_handle_frame(node, 1000, V2X_INTERFACE_RADIO, NULL, 60) == V2X_ERROR_NULL);
    EXPECT(v2x_handle_frame(node, 1000, 2, noise, 60) == V2X_ERROR_VALUE);
    EXPECT(v2x_handle_frame(node, 1000, V2X_INTERFACE_RADIO, noise, SIZE_MAX) == V2X_ERROR_VALUE);
    EXPECT(v2x_handle_link(node, 1000, 4) == V2X_ERROR_VALUE);
    EXPECT(v2x_handle_channel_busy(NULL, 1000, 50) == V2X_ERROR_NULL);
    EXPECT(v2x_handle_channel_busy(node, 1000, 101) == V2X_ERROR_VALUE);
    EXPECT(v2x_handle_channel_busy(node, 1000, 100) == V2X_ERROR_OK);
    EXPECT(v2x_take_frame(node, NULL) == V2X_ERROR_NULL);
    EXPECT(v2x_next_timeout(node, NULL) == V2X_ERROR_NULL);
    EXPECT(v2x_attached(node, &attachment) == V2X_ERROR_NOTHING);
    EXPECT(v2x_attached(node, NULL) == V2X_ERROR_NULL);

    /* Noise of every length, on both sides, costs nothing but a count. */
    for (size_t len = 0; len <= sizeof noise; len++) {
        EXPECT(v2x_handle_frame(node, 1000 + len, V2X_INTERFACE_RADIO, noise, len) == V2X_ERROR_OK);
        EXPECT(v2x_handle_frame(node, 1000 + len, V2X_INTERFACE_TAP, noise, len) == V2X_ERROR_OK);
    }
    EXPECT(v2x_next_timeout(node, &at) == V2X_ERROR_OK && at >= 1000);
    while (v2x_take_frame(node, &frame) == V2X_ERROR_OK) {
        EXPECT(frame.len >= 14 && frame.bytes != NULL);
    }
    EXPECT(v2x_take_frame(node, &frame) == V2X_ERROR_NOTHING);
    EXPECT(v2x_shutdown(node, at + 1000, NULL) == V2X_ERROR_OK);
    v2x_free(node);
    return 0;
}

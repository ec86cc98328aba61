/* Two nodes in a program in C, without sockets and without a clock: a client behind an OBU and a
 * host on the LAN behind an RSU greet each other. So a network simulator drives nodes: its events
 * are the arrivals and time-outs of run().
 *
 *     cargo build --release -p v2x_capi
 *     cc examples/two_nodes.c -Icapi/include -Ltarget/release -lv2x -o two_nodes
 *     LD_LIBRARY_PATH=target/release ./two_nodes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "v2x.h"

enum { OBU, RSU, NODES, AIR_MAX = 256, FRAME_MAX = 2048, DELAY_US = 500 };

/* A frame in the air. All are in it for the same time, so the oldest arrives first. */
struct flight {
    uint64_t at;
    int to;
    size_t len;
    uint8_t bytes[FRAME_MAX];
};

static v2x_node *nodes[NODES];
static struct flight air[AIR_MAX];
static size_t air_first, air_count;
static uint64_t now;
static int heard;

static const uint8_t client[6] = {2, 0, 0, 0, 1, 1};
static const uint8_t host[6] = {2, 0, 0, 0, 2, 1};

static void must(v2x_error error, const char *what) {
    if (error != V2X_ERROR_OK) {
        fprintf(stderr, "%s: error %d\n", what, (int)error);
        exit(1);
    }
}

/* Takes what a node wants sent: over the air to the other, or to whoever is behind its TAP. */
static void send_all(int from) {
    v2x_frame frame;
    while (v2x_take_frame(nodes[from], &frame) == V2X_ERROR_OK) {
        if (frame.interface == V2X_INTERFACE_TAP) {
            printf("%s hands %zu bytes to its TAP: %s\n", from == OBU ? "OBU" : "RSU", frame.len,
                   frame.len > 14 ? (const char *)frame.bytes + 14 : "");
            heard++;
        } else if (air_count < AIR_MAX && frame.len <= FRAME_MAX) {
            struct flight *flight = &air[(air_first + air_count++) % AIR_MAX];
            flight->at = now + DELAY_US;
            flight->to = from == OBU ? RSU : OBU;
            flight->len = frame.len;
            memcpy(flight->bytes, frame.bytes, frame.len);
        }
    }
}

/* Runs from one thing that happens to the next. */
static void run(uint64_t until) {
    for (;;) {
        uint64_t next = UINT64_MAX, at;
        int who = -1;
        for (int node = 0; node < NODES; node++) {
            if (v2x_next_timeout(nodes[node], &at) == V2X_ERROR_OK && at < next) {
                next = at;
                who = node;
            }
        }
        struct flight *arrival = air_count > 0 ? &air[air_first] : NULL;
        if (arrival != NULL && arrival->at <= next) {
            next = arrival->at;
        } else {
            arrival = NULL;
        }
        if (next > until) {
            break;
        }
        now = next > now ? next : now;
        if (arrival != NULL) {
            who = arrival->to;
            must(v2x_handle_frame(nodes[who], now, V2X_INTERFACE_RADIO, arrival->bytes,
                                  arrival->len),
                 "frame");
            air_first = (air_first + 1) % AIR_MAX;
            air_count--;
        } else {
            must(v2x_handle_timeout(nodes[who], now), "timeout");
        }
        send_all(who);
    }
    now = until;
}

/* Hands a node a frame as if a host behind its TAP had sent it. */
static void say(int node, const uint8_t *to, const uint8_t *from, const char *text) {
    uint8_t frame[60] = {0};
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    frame[12] = 0x88;
    frame[13] = 0xb6;
    strncpy((char *)frame + 14, text, sizeof frame - 15);
    must(v2x_handle_frame(nodes[node], now, V2X_INTERFACE_TAP, frame, sizeof frame), "tap");
    send_all(node);
}

int main(void) {
    for (int node = 0; node < NODES; node++) {
        v2x_start start = {.mac = {2, 0, 0, 0, 0, (uint8_t)(node + 1)}};
        nodes[node] = v2x_new(node == OBU ? V2X_ROLE_OBU : V2X_ROLE_RSU, &start, now);
        if (nodes[node] == NULL) {
            fprintf(stderr, "no node\n");
            return 1;
        }
    }
    run(1000000);
    v2x_attachment attached;
    must(v2x_attached(nodes[OBU], &attached), "attachment");
    printf("OBU uses RSU ..:%02x, %d hop\n", attached.rsu[5], attached.hops);
    say(OBU, host, client, "ping");
    run(1010000);
    say(RSU, client, host, "pong");
    run(1020000);

    uint64_t linger;
    must(v2x_shutdown(nodes[OBU], now, &linger), "shutdown");
    send_all(OBU);
    run(now + linger);
    for (int node = 0; node < NODES; node++) {
        v2x_free(nodes[node]);
    }
    return heard == 2 ? 0 : 1;
}

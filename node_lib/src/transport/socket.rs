//! Sizes of the radio's sockets, of which there are two alike: one for control, one for data.

/// Bytes asked for what was received (`SO_RCVBUF`). The kernel grants twice as much (socket(7)) and
/// counts [`truesize`] for each frame: room for 3,640 full frames, 40 ms at 1 Gbit/s.
pub const RECV_BUFFER: usize = 4 << 20;

/// Bytes asked for what is on its way out (`SO_SNDBUF`). Twice as much is granted: 910 full frames.
/// A socket without room tells when half of it is free again.
pub const SEND_BUFFER: usize = 1 << 20;

/// What a frame of this many bytes takes of a socket's buffer: the kernel's own record of it, and a
/// block of memory for the frame with the room around it (`SKB_TRUESIZE`, include/linux/skbuff.h;
/// x86-64). 2,304 bytes for a full frame, 768 for a short one.
pub const fn truesize(frame_len: usize) -> usize {
    const RECORD: usize = 256;
    const SHARED_INFO: usize = 320;
    const HEADROOM: usize = 64;
    const BLOCK_MIN: usize = 512;
    let block = (HEADROOM + frame_len + SHARED_INFO).next_power_of_two();
    RECORD + if block < BLOCK_MIN { BLOCK_MIN } else { block }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_as_many_frames_as_its_description_says() {
        assert_eq!((truesize(1514), truesize(60)), (2304, 768));
        assert_eq!(2 * RECV_BUFFER / truesize(1514), 3640);
        assert_eq!(2 * SEND_BUFFER / truesize(1514), 910);
    }
}

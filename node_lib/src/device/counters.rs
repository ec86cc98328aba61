//! What a device counts.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Frames and losses of one device since it was opened.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct DeviceCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl DeviceCounters {
            /// Name and value of each counter, in a fixed order, for logs and metrics.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Frames handed to the loop.
    rx_frames,
    /// Bytes in them.
    rx_bytes,
    /// Dropped: marked by the kernel as for another host.
    rx_foreign,
    /// Dropped: so marked although it is for a group or everybody, because it came with a VLAN tag.
    rx_tagged,
    /// Dropped: sent by ourselves.
    rx_own,
    /// Dropped: longer than the interface's MTU allows, so possibly cut short.
    rx_oversize,
    /// Dropped by the kernel because we were too slow to read.
    rx_kernel_drops,
    /// Super-frames of a TAP with segmentation offload that were split.
    rx_super_frames,
    /// Frames they were split into; counted in `rx_frames` as well.
    rx_segments,
    /// Dropped: neither a frame nor a super-frame as its vnet header describes it.
    rx_malformed,
    /// Reads that failed because the interface was down.
    rx_down,
    /// Reads that failed for any other reason.
    rx_errors,
    /// Frames given to the kernel.
    tx_frames,
    /// Bytes in them.
    tx_bytes,
    /// Super-frames given to a TAP with segmentation offload.
    tx_super_frames,
    /// Frames that were joined to them; counted in `tx_frames` as well.
    tx_segments,
    /// Dropped: the interface was down or gone.
    tx_down,
    /// Dropped: a queue or buffer of the kernel was full.
    tx_full,
    /// Dropped: longer than the interface carries.
    tx_oversize,
    /// Dropped: shorter than an Ethernet header.
    tx_short,
    /// Dropped: the kernel refused for any other reason.
    tx_errors,
    /// Times the device was bound to, or created as, a new interface of the same name.
    reopened,
}

impl DeviceCounters {
    /// Counts one frame of `len` bytes received.
    pub(super) fn count_rx(&mut self, len: usize) {
        self.rx_frames += 1;
        self.rx_bytes += len as u64;
    }

    /// Counts one frame of `len` bytes sent.
    pub(super) fn count_tx(&mut self, len: usize) {
        self.tx_frames += 1;
        self.tx_bytes += len as u64;
    }
}

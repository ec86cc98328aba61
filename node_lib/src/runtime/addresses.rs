//! What a host says of its own addresses when it comes to a LAN: those of the TAP, once the node is
//! attached.
//!
//! The kernel would say it when the interface comes up (`arp_notify`), long before a frame gets
//! through. Hosts on the LAN that know another MAC for an address of ours would send there until
//! their entry has expired, which takes half a minute and more.

use std::net::IpAddr;

use crate::address_announcement::AddressAnnouncement;
use crate::mac::Mac;

/// A frame for each address.
pub fn announcements(mac: Mac, addresses: impl IntoIterator<Item = IpAddr>) -> Vec<Vec<u8>> {
    let announce = |address| {
        let mut frame = Vec::new();
        AddressAnnouncement { mac, tag: None, address, is_router: false }.emit(&mut frame);
        frame
    };
    addresses.into_iter().map(announce).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

    #[test]
    fn an_ipv4_address_is_announced_as_rfc_5227_says() {
        let frames = announcements(MAC, [Ipv4Addr::new(10, 0, 0, 9).into()]);
        let expected = [
            &[0xff; 6][..],
            &MAC.0,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &MAC.0,
            &[10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9],
        ]
        .concat();
        assert_eq!(frames[0][..42], expected);
        assert_eq!((frames.len(), frames[0].len()), (1, 60));
    }

    #[test]
    fn an_ipv6_address_is_advertised_by_a_host_that_is_no_router() {
        let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
        let frames = announcements(MAC, [address.into()]);
        let frame: String = frames[0].iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "33330000000102000000000786dd6000000000203aff\
                        fd000000000000000000000000000009ff020000000000000000000000000001\
                        88005a8520000000fd0000000000000000000000000000090201020000000007";
        assert_eq!(frame, expected);
    }
}

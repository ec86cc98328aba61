//! What the kernel tells of a TAP and of no other interface: who may open it, and with how many
//! queues.

use rtnetlink::packet_core::Nla;
use rtnetlink::packet_route::link::{InfoData, InfoTun, LinkInfo, LinkMessage};

use super::interface::infos_of;
use crate::device::tap_owner::TapOwner;

/// What a message says of a TAP. Kernels before 4.16 say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TunInfo {
    pub(super) owner: TapOwner,
    /// It takes several queues, and then each of its descriptors has to ask for that.
    pub(super) is_multi_queue: bool,
}

pub(super) fn tun_info(message: &LinkMessage) -> TunInfo {
    /// linux/if_link.h.
    const OWNER: u16 = 1;
    const GROUP: u16 = 2;
    const MULTI_QUEUE: u16 = 7;
    let attributes = infos_of(message).filter_map(|info| match info {
        LinkInfo::Data(InfoData::Tun(attributes)) => Some(attributes),
        _ => None,
    });
    let mut said = TunInfo::default();
    for attribute in attributes.flatten() {
        match attribute.kind() {
            OWNER => said.owner.user = number(attribute),
            GROUP => said.owner.group = number(attribute),
            MULTI_QUEUE => said.is_multi_queue = number(attribute).is_some_and(|flag| flag != 0),
            _ => {}
        }
    }
    said
}

/// The value of up to four bytes; of fewer it is only known whether it is zero.
fn number(attribute: &InfoTun) -> Option<u32> {
    let mut bytes = [0; 4];
    attribute.emit_value(bytes.get_mut(..attribute.value_len())?);
    Some(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use rtnetlink::packet_core::DefaultNla;
    use rtnetlink::packet_route::link::LinkAttribute;

    use super::*;

    fn said(attributes: &[(u16, &[u8])]) -> TunInfo {
        let attributes = attributes
            .iter()
            .map(|(kind, value)| InfoTun::Other(DefaultNla::new(*kind, value.to_vec())));
        let mut message = LinkMessage::default();
        let data = LinkInfo::Data(InfoData::Tun(attributes.collect()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![data]));
        tun_info(&message)
    }

    #[test]
    fn owner_and_queues_are_read_and_the_rest_is_left_alone() {
        let (user, group) = (1000_u32.to_ne_bytes(), 7_u32.to_ne_bytes());
        assert_eq!(tun_info(&LinkMessage::default()), TunInfo::default());
        assert_eq!(said(&[(3, &[2]), (7, &[0]), (8, &[1, 0, 0, 0])]), TunInfo::default());
        let owner = TapOwner { user: Some(1000), group: Some(7) };
        let expected = TunInfo { owner, is_multi_queue: true };
        assert_eq!(said(&[(1, &user), (2, &group), (7, &[1])]), expected);
        assert_eq!(said(&[(1, &[0; 5]), (7, &[])]), TunInfo::default(), "of another length");
    }

    #[test]
    fn a_tap_is_for_its_user_its_group_both_or_everybody() {
        for (user, group, admits, words) in [
            (None, None, true, "everybody"),
            (Some(1), None, true, "user 1"),
            (Some(2), None, false, "user 2"),
            (None, Some(11), true, "group 11"),
            (None, Some(12), false, "group 12"),
            (Some(1), Some(11), true, "user 1 in group 11"),
            (Some(2), Some(11), false, "user 2 in group 11"),
            (Some(1), Some(12), false, "user 1 in group 12"),
        ] {
            let owner = TapOwner { user, group };
            assert_eq!(owner.admits(1, &[10, 11]), admits, "{owner:?}");
            assert_eq!(owner.to_string(), words);
        }
    }
}

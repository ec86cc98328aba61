//! Whom a TAP belongs to.

use std::fmt;

/// Who may open a TAP without `CAP_NET_ADMIN`, by numbers as this user namespace has them. Where
/// both are set both must be met; where neither is, everybody may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapOwner {
    /// Only this user.
    pub user: Option<u32>,
    /// Only members of this group.
    pub group: Option<u32>,
}

impl TapOwner {
    /// Whether a process of this user and these groups may.
    pub fn admits(self, user: u32, groups: &[u32]) -> bool {
        self.user.is_none_or(|owner| owner == user)
            && self.group.is_none_or(|group| groups.contains(&group))
    }
}

impl fmt::Display for TapOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.user, self.group) {
            (Some(user), Some(group)) => write!(f, "user {user} in group {group}"),
            (Some(user), None) => write!(f, "user {user}"),
            (None, Some(group)) => write!(f, "group {group}"),
            (None, None) => f.write_str("everybody"),
        }
    }
}

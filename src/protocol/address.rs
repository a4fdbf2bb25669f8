//! To an AddressActor: who may ask an IP address, and when (F4).

use std::net::IpAddr;

use serde::Serialize;

use super::Answer;
use crate::types::{LeaseId, Timestamp};

/// The mailbox of an AddressActor; bounded by the leases that shards have credit for.
#[derive(Debug)]
pub enum AddressMsg {
    /// A permit for one exchange with an address; answered when the address has a place free, with
    /// the earliest time it may be asked.
    Ask {
        /// The address.
        address: IpAddr,
        /// For which lease.
        lease: LeaseId,
        /// Not needed before.
        not_before: Timestamp,
        /// The earliest time of sending.
        answer: Answer<Timestamp>,
    },
    /// The request is about to be sent: answered once its address's clock allows it (I2).
    Depart {
        /// The address.
        address: IpAddr,
        /// For which lease.
        lease: LeaseId,
        /// Sent when it may go.
        answer: Answer<Timestamp>,
    },
    /// The exchange has ended, or never took place: the place is free again.
    Left {
        /// The address.
        address: IpAddr,
        /// For which lease.
        lease: LeaseId,
        /// When it ended; `None` when nothing was sent.
        ended_at: Option<Timestamp>,
    },
    /// Its timer rang: those whose time has come are answered.
    Wake,
    /// `[politeness]` was reloaded.
    Reload(crate::policy::address_clock::AddressRules),
    /// Say how it stands.
    Observe(Answer<AddressView>),
}

/// The state of an AddressActor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AddressView {
    /// Addresses with a running clock or a place taken.
    pub addresses: u32,
    /// Places taken.
    pub in_flight: u32,
    /// Leases that wait for a place.
    pub waiting: u32,
}

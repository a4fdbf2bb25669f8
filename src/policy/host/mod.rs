//! The machine of one host: admit, grant, complete, expire, wake (F2, F4, F5, F6).

mod settings;
mod effects;
mod machine;
mod granting;
mod completing;
mod wishes;

pub use effects::{Effects, Errand, Grant, HostEvent, OfferAnswer};
pub use machine::{HostMachine, HostSeed, HostSnapshot};
pub use settings::HostSettings;

#[cfg(test)]
mod tests;

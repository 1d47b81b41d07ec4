//! Requests on the network: first by name, then by where the name leads.
//!
//! Fails closed when one address of several is of special purpose and neither it nor the request by name was granted
//! with that: an answer is taken as a whole or not at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[cfg(feature = "fetch")]
use bailiwick_journal::format::{Decision, RecordKind};
use bailiwick_policy::authority::Request;
use bailiwick_policy::net::{Host, NetRequest, canonical_ip, is_special};

use super::ToolContext;
use crate::tool::ToolError;

impl ToolContext {
    /// May this request be made, as far as its host, port, method and path say? Where its name leads is for
    /// [`ToolContext::check_addresses`].
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn check_request(&self, request: &NetRequest) -> Result<(), ToolError> {
        let asked = Request::Net(self.as_granted(request));
        self.check(&asked, || format!("{request} is not within the granted authority"))
    }

    /// May this request, which [`ToolContext::check_request`] let through, go to these addresses? They are all that
    /// its host resolved to, and only they may be dialled. A special-purpose address is let through if it is granted
    /// by itself, or if the grant for the host says so; one that is not refuses the whole answer.
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn check_addresses(&self, request: &NetRequest, addresses: &[IpAddr]) -> Result<(), ToolError> {
        let granted = |ip: &IpAddr| {
            let own = NetRequest::new(Host::Ip(*ip), request.port(), request.speak().clone());
            self.authority().allows(&Request::Net(own))
        };
        let mut addresses = addresses.iter().copied().map(canonical_ip);
        let Some(private) = addresses.find(|ip| is_special(*ip) && !granted(ip)) else { return Ok(()) };
        let asked = Request::Net(self.as_granted(request).resolved_privately());
        self.check(&asked, || {
            format!(
                "{request} leads to the private address {private}, which is not within the granted authority"
            )
        })
    }

    /// Records which address was dialled.
    #[cfg(feature = "fetch")]
    pub(crate) fn reached(&self, request: &NetRequest, address: IpAddr) {
        let event = self
            .event(RecordKind::EgressAllowed, Decision::Allow)
            .with_capability(format!("net:connect:{}:{}", request.host(), request.port()))
            .with_reason(format!("reached at {address}"));
        // The request itself is recorded; a journal that takes no more refuses the next one.
        drop(self.journal().append(event));
    }

    /// A loopback address under the name `localhost`, if only that was granted: programs look it up themselves.
    fn as_granted(&self, request: &NetRequest) -> NetRequest {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let is_loopback = matches!(request.host(), Host::Ip(ip) if loopback.contains(ip));
        if !is_loopback || self.authority().allows(&Request::Net(request.clone())) {
            return request.clone();
        }
        let named = NetRequest::new(Host::Name("localhost".into()), request.port(), request.speak().clone());
        if self.authority().allows(&Request::Net(named.clone())) { named } else { request.clone() }
    }
}

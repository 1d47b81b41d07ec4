//! Why a connection was refused or failed: stable codes.

macro_rules! codes {
    ($($variant:ident $text:literal : $meaning:literal;)+) => {
        /// A stable name for one kind of refusal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $meaning] $variant,)+ }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// What it means, in one line.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

codes! {
    HostNotGranted "net-host-not-granted": "not granted";
    PortNotGranted "net-port-not-granted": "granted on other ports only";
    AddressPrivate "net-address-private": "the name leads to a private address";
    RequestNotGranted "net-request-not-granted": "the host is granted, but not this request";
    RequestAmbiguous "net-request-ambiguous": "servers may read this request in more than one way, and only some requests are granted";
    ProtocolNotGranted "net-protocol-not-granted": "neither TLS nor HTTP is spoken, which needs `?protocol=raw`";
    TlsNameMissing "net-tls-name-missing": "the TLS client names no server";
    TlsNameOther "net-tls-name-other": "the TLS client names another server";
    TlsNameHidden "net-tls-name-hidden": "the TLS client hides or may hide the server's name";
    TlsUnreadable "net-tls-unreadable": "the TLS client's first message cannot be read";
    HttpHostOther "net-http-host-other": "the HTTP request names another host";
    HttpUnreadable "net-http-unreadable": "the HTTP request cannot be read in one way only";
    HttpTunnel "net-http-tunnel": "the HTTP request asks for a tunnel or another protocol";
    HelloLate "net-hello-late": "the client said too little for too long; where the server speaks first, the grant needs `?protocol=raw`";
    NameUnresolved "net-name-unresolved": "the name has no address";
    Unreachable "net-unreachable": "no address of the host answers";
    TooManyNames "net-too-many-names": "too many different names were asked for";
    WildcardSpent "net-wildcard-spent": "too many different names below this wildcard were looked up; grant the names in place of the wildcard";
    TooManyConnections "net-too-many-connections": "too many connections are open";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

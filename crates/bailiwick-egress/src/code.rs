//! Why a connection was refused or failed: stable codes.

bailiwick_policy::code_table! {
    /// A stable name for one kind of refusal.
    Code {
        HostNotGranted "net-host-not-granted": "not granted";
        PortNotGranted "net-port-not-granted": "granted on other ports only";
        AddressPrivate "net-address-private": "the name leads to a private address";
        AddressReserved "net-address-reserved": "the address is one of those that stand for names in the sandbox, and stands for none";
        OwnPort "net-own-port": "Bailiwick itself listens there, and no sandbox reaches it whatever is granted";
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
        NoServer "net-no-server": "a connection from outside was refused: nothing listens on the port inside";
        TooManyNames "net-too-many-names": "too many different names were asked for";
        WildcardSpent "net-wildcard-spent": "too many different names below this wildcard were looked up; grant the names in place of the wildcard";
        TooManyConnections "net-too-many-connections": "too many connections are open";
        SecretMisdirected "secret-misdirected": "the placeholder of a secret was sent where its value is not used";
        SecretInTheClear "secret-in-the-clear": "a secret is brokered for this host, so it is spoken to in TLS that names it and in nothing else";
        SecretForeign "secret-foreign": "the request carries a credential of its own, and the host's credentials are brokered";
        SecretRule "secret-rule": "the secret's rules do not cover this request";
        SecretUntrusted "secret-untrusted": "the client does not trust the sandbox's certificate: it pins another one or ignores the list of authorities that it was given";
        SecretUpstream "secret-upstream": "the server's certificate cannot be verified, so no secret is sent there";
        SecretRequest "secret-request": "a request to a host with brokered secrets has a form that cannot be passed on safely";
        SecretSigning "secret-signing": "the request is not signed in a way in which it can be signed anew with the secret";
        SecretBroker "secret-broker": "the process that holds the secrets cannot be asked";
        SecretResponse "secret-response": "the response has a form in which a secret could not be found, so it was withheld";
    }
}

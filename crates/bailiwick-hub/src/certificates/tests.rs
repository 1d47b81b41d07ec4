//! What the authority signs is read back as it was meant; what is not signed with its own key is refused.

use super::*;

fn request(key: &KeyPair) -> String {
    CertificateParams::default().serialize_request(key).unwrap().pem().unwrap()
}

#[test]
fn a_member_is_read_back_from_its_certificate() {
    let authority = Authority::create("fleet.example").unwrap();
    let key = KeyPair::generate().unwrap();
    let requested = RequestedKey::read(&request(&key)).unwrap();
    let subject = authority.subject("machine", "0123");
    let (chain, end) = authority.member(&subject, &requested).unwrap();
    assert!(end > 0);
    let (_, block) = x509_parser::pem::parse_x509_pem(chain.as_bytes()).unwrap();
    let claim = Claim::read(&block.contents).unwrap();
    assert_eq!(
        claim,
        Claim { subject: "spiffe://fleet.example/machine/0123".to_owned(), key_hash: *requested.hash() }
    );
}

#[test]
fn an_authority_is_read_back_and_another_key_is_refused() {
    let authority = Authority::create("fleet.example").unwrap();
    let read = Authority::open(authority.pem().as_bytes(), authority.key_pem().as_bytes()).unwrap();
    assert_eq!((read.name.as_str(), read.der()), ("fleet.example", authority.der()));
    let other = Authority::create("fleet.example").unwrap();
    assert!(Authority::open(authority.pem().as_bytes(), other.key_pem().as_bytes()).is_err());
}

#[test]
fn a_request_that_is_not_signed_with_its_own_key_is_refused() {
    let good = request(&KeyPair::generate().unwrap());
    assert!(RequestedKey::read(&good).is_ok(), "the control");
    let (_, block) = x509_parser::pem::parse_x509_pem(good.as_bytes()).unwrap();
    for at in [block.contents.len() - 4, block.contents.len() / 2] {
        let mut changed = block.contents.clone();
        changed[at] ^= 1;
        assert!(RequestedKey::read(&pem(&block.contents)).is_ok(), "the control");
        let pem = pem(&changed);
        assert!(RequestedKey::read(&pem).is_err(), "byte {at}");
    }
    for wrong in ["", "-----BEGIN CERTIFICATE REQUEST-----\n", &format!("{good}{good}")] {
        assert!(RequestedKey::read(wrong).is_err(), "{wrong}");
    }
    let large = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    assert!(RequestedKey::read(&request(&large)).is_err());
}

fn pem(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n")
}

#[test]
fn a_certificate_without_exactly_one_spiffe_id_names_no_member() {
    let key = KeyPair::generate().unwrap();
    let with = |names: &[&str]| {
        let mut params = CertificateParams::default();
        params.subject_alt_names =
            names.iter().map(|name| SanType::URI((*name).try_into().unwrap())).collect();
        Claim::read(params.self_signed(&key).unwrap().der())
    };
    assert!(with(&["spiffe://a/machine/b"]).is_ok());
    for wrong in [&[][..], &["https://a/b"], &["spiffe://a/b", "spiffe://a/c"], &["spiffe://a/b c"]] {
        assert!(with(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_hosts_of_a_server_certificate_are_read() {
    let authority = Authority::create("fleet.example").unwrap();
    for (host, read) in [("hub.example", "hub.example"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")] {
        let (chain, _) = authority.server(host).unwrap();
        let (_, block) = x509_parser::pem::parse_x509_pem(chain.as_bytes()).unwrap();
        assert_eq!(hosts_of(&block.contents).unwrap(), [read]);
    }
}

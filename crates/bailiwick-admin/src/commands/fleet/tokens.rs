//! `bailiwick fleet token` and `admit`: who may join.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::member_link::{MemberLink, block_on};
use bailiwick_command::render::{escape, style};
use bailiwick_fleet::admin::{SubjectAnswer, SubjectRequest, TokenAnswer, TokenRequest};

use super::{FleetFault, role_of};
use crate::args::fleet::{Admit, Token};

/// Prints a token, and nothing else: it goes into a file or a pipe.
pub(super) fn make(link: &MemberLink, args: &Token) -> Result<Answer, FleetFault> {
    let labels = args.labels.iter().cloned().collect();
    let asked = TokenRequest { role: role_of(args.role), labels, ttl_s: args.ttl.0.as_secs() };
    // One that was made and not answered expires without being used.
    let made: TokenAnswer = block_on(link.hub.post_unrepeated("/v1/tokens", &asked))??;
    Ok(Answer::result(Exit::Fine, escape::line(&made.token) + "\n"))
}

pub(super) fn admit(link: &MemberLink, args: &Admit) -> Result<Answer, FleetFault> {
    let labels = args.labels.iter().cloned().collect();
    let asked = SubjectRequest { subject: args.subject.clone(), role: role_of(args.role), labels };
    let made: SubjectAnswer = block_on(link.hub.post_unrepeated("/v1/members", &asked))??;
    let text = format!("{}: admitted as `{}`\n", style::good("ok"), escape::line(&made.member));
    Ok(Answer::result(Exit::Fine, text))
}

//! `bailiwick fleet approve`: the calls that wait for a person of the fleet, and an answer to one.
//!
//! An answer names the arguments that were shown: the hub refuses one for others. What is shown was redacted by the machine.

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::member_link::{MemberLink, block_on};
use bailiwick_command::render::{escape, json as render_json, style};
use bailiwick_command::{moment, terminal};
use bailiwick_fleet::protocol::{ApprovalAnswer, ApprovalStatus, PendingApproval};
use serde_json::json;

use super::FleetFault;
use crate::args::fleet::Approve;

pub(super) fn run(link: &MemberLink, args: &Approve) -> Result<Answer, FleetFault> {
    let waiting: Vec<PendingApproval> = block_on(link.hub.get("/v1/approvals"))??;
    let Some(id) = &args.id else { return Ok(Answer::result(Exit::Fine, list(&waiting, args.shown.format))) };
    let Some(call) = waiting.iter().find(|one| one.request.id == *id) else {
        let why = format!("no call waits as `{id}`: it was answered, it expired, or its machine was revoked");
        return Ok(refused(Exit::Found, &why));
    };
    let question = format!("{}May it run, once?", shown(call));
    // A no needs no second thought.
    if !args.deny && !args.yes && terminal::confirm(&question)? != Some(true) {
        return Ok(refused(Exit::Found, "not approved: confirm at a terminal, or say --yes"));
    }
    let arguments_sha256 = call.request.arguments_sha256;
    let answer = ApprovalAnswer { allow: !args.deny, arguments_sha256, remark: args.remark.clone() };
    let path = format!("/v1/approvals/{id}/answer");
    let status: ApprovalStatus = block_on(link.hub.post(&path, &answer))??;
    let word = match status {
        ApprovalStatus::Denied { .. } => "denied",
        ApprovalStatus::Allowed { .. } | ApprovalStatus::Used => "approved",
        ApprovalStatus::Waiting { .. } | ApprovalStatus::Expired => {
            return Ok(refused(Exit::Found, "the call expired before it was answered"));
        }
    };
    let text = match args.shown.format {
        AnswerFormat::Text => format!("{}: {word} {}\n{}", style::good("ok"), escape::line(id), shown(call)),
        AnswerFormat::Json => {
            render_json::document(&json!({ "format": "bailiwick.fleet-answer/1", "id": id, "answer": word }))
        }
    };
    Ok(Answer::result(Exit::Fine, text))
}

fn list(waiting: &[PendingApproval], format: AnswerFormat) -> String {
    match format {
        AnswerFormat::Json => {
            render_json::document(&json!({ "format": "bailiwick.fleet-approvals/1", "waiting": waiting }))
        }
        AnswerFormat::Text if waiting.is_empty() => "no call waits\n".to_owned(),
        AnswerFormat::Text => {
            waiting.iter().map(|one| format!("{}\n{}", escape::line(&one.request.id), shown(one))).collect()
        }
    }
}

fn shown(one: &PendingApproval) -> String {
    let request = &one.request;
    format!(
        "  machine  {}\n  call     {}/{} {}\n  why      {}\n  until    {}\n",
        escape::line(&one.machine),
        escape::line(&request.server),
        escape::line(&request.tool),
        escape::line(&request.arguments.to_string()),
        escape::line(&request.reason),
        moment::utc(one.expires_ms.saturating_mul(1000)),
    )
}

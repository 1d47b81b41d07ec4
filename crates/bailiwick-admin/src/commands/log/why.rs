//! `bailiwick log why`: what a denial was about, and the smallest grant that would allow it.
//!
//! The grant is what the gate worked out when it refused. It is read again here, and offered for pasting only
//! if the manifest's own parser accepts it: the journal's text is data, not advice.

mod remedy;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::render::{escape, json, style};
use bailiwick_journal::format::{Decision, Event, Record, RecordKind};
use bailiwick_policy::authority::Axis;
use bailiwick_policy::capability::{Capability, FsActions};
use bailiwick_policy::denial::DenialCode;
use serde_json::{Value, json};

use self::remedy::Remedy;
use super::find::{self, Family};
use super::{Scope, refusal};
use crate::args::log::EventName;
use crate::render::event;

/// A denial, explained.
struct Why<'a> {
    record: &'a Record,
    event: &'a Event,
    /// The call it belongs to.
    call: Option<&'a Record>,
    code: Option<DenialCode>,
    axis: Option<Axis>,
    /// The reason without what was granted.
    reason: &'a str,
    granted: Option<&'a str>,
    remedy: Remedy,
}

pub(super) fn run(scope: &Scope, name: &EventName) -> Answer {
    let family = match find::family(scope, name) {
        Ok(family) => family,
        Err(refusal) => return refusal,
    };
    let family = match deciding(scope, family) {
        Ok(family) => family,
        Err(answer) => return answer,
    };
    let Some(why) = Why::from_family(&family) else {
        let why = format!("`{}` was not denied; see `bailiwick log show`", event::name(&family.event));
        return refusal(Exit::Usage, &why);
    };
    Answer::result(
        Exit::Fine,
        match scope.format {
            AnswerFormat::Text => why.text(scope),
            AnswerFormat::Json => json::document(&why.document()),
        },
    )
}

/// The event that says most: of a call that was denied something, the check itself.
fn deciding(scope: &Scope, family: Family) -> Result<Family, Answer> {
    let event = family.event.event();
    if event.is_some_and(|event| event.kind() == RecordKind::ToolFinished && is_denied(event))
        && let Some(call) = &family.parent
    {
        let call = EventName { session: Some(call.session.clone()), seq: call.seq };
        return deciding(scope, find::family(scope, &call)?).map(|found| match found.event.event() {
            Some(event) if is_denied(event) => found,
            _ => family,
        });
    }
    let denied = |record: &&Record| {
        record.event().is_some_and(|event| event.kind() != RecordKind::ToolFinished && is_denied(event))
    };
    match family.children.iter().find(denied) {
        Some(child) if !event.is_some_and(is_denied) => {
            find::family(scope, &EventName { session: Some(child.session.clone()), seq: child.seq })
        }
        _ => Ok(family),
    }
}

fn is_denied(event: &Event) -> bool {
    event.decision() == Some(Decision::Deny)
}

impl<'a> Why<'a> {
    fn from_family(family: &'a Family) -> Option<Self> {
        let event = family.event.event().filter(|event| is_denied(event))?;
        let code =
            event.code().and_then(|text| DenialCode::ALL.iter().find(|code| code.as_str() == text)).copied();
        let reason = event.reason().unwrap_or("no reason was recorded");
        let split = reason.strip_suffix(')').and_then(|text| text.rsplit_once(" (granted: "));
        let (reason, granted) = split.map_or((reason, None), |(reason, granted)| (reason, Some(granted)));
        let remedy = Remedy::for_event(event, code);
        let axis = axis(code, &remedy);
        let (record, call) = (&family.event, family.parent.as_ref());
        Some(Self { record, event, call, code, axis, reason, granted, remedy })
    }

    fn meaning(&self) -> &'static str {
        self.code.map_or_else(|| remedy::meaning(self.event), DenialCode::meaning)
    }

    fn text(&self, scope: &Scope) -> String {
        let mut text = format!("{}: {}\n", style::error("denied"), escape::line(self.reason));
        let mut field = |name: &str, value: &str| text += &format!("  {name:<8} {value}\n");
        field("event", &format!("{}, {}", event::name(self.record), scope.clock.show(self.record.time())));
        if let Some(tool) = self.event.tool() {
            field("tool", &escape::line(tool));
        }
        field("code", &format!("{}: {}", escape::line(self.event.code().unwrap_or("-")), self.meaning()));
        if let Some(axis) = self.axis {
            field("axis", axis.as_str());
        }
        for line in self.remedy.lines() {
            field("asked", &escape::line(&line.to_string()));
        }
        if let Some(granted) = self.granted {
            field("granted", &escape::line(granted));
        }
        if let Some(origin) = self.event.origin() {
            field("line", &escape::line(origin));
        }
        if let Some(call) = self.call {
            field("call", &event::text_line(call, scope.clock));
        }
        text + &self.remedy.text()
    }

    fn document(&self) -> Value {
        json!({
            "format": "bailiwick.why/1",
            "event": event::json(self.record),
            "call": self.call.map(event::json),
            "tool": self.event.tool(),
            "code": self.event.code(),
            "meaning": self.meaning(),
            "axis": self.axis.map(Axis::as_str),
            "reason": self.reason,
            "granted": self.granted,
            "origin": self.event.origin(),
            "smallest_grant": self.remedy.lines().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "manifest": self.remedy.manifest(),
            "advice": self.remedy.advice(),
        })
    }
}

/// The axis that decided: as the code says, else as the missing capability does.
fn axis(code: Option<DenialCode>, remedy: &Remedy) -> Option<Axis> {
    let by_code = Axis::ALL.into_iter().find(|axis| Some(DenialCode::from(*axis)) == code);
    by_code.or_else(|| remedy.lines().first().and_then(axis_of))
}

const fn axis_of(capability: &Capability) -> Option<Axis> {
    Some(match capability {
        Capability::Fs { actions, .. } if actions.contains(FsActions::READ) => Axis::FsRead,
        Capability::Fs { .. } => Axis::FsWrite,
        Capability::Net(_) | Capability::Listen(_) => Axis::Net,
        Capability::Exec { .. } => Axis::Exec,
        Capability::Env { .. } | Capability::Broker { .. } => Axis::Env,
        Capability::Ipc(_) => Axis::Ipc,
        Capability::Clock(_) => Axis::Clock,
        Capability::Assert { .. } => return None,
    })
}

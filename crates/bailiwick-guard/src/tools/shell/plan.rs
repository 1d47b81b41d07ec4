//! What the sandboxes of a call must hold: the call's own authority, as it means on this host.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bailiwick_launch::{Brokering, HostPlanner, PlanError};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::plan::Plan;

use super::args::is_loader;
use crate::gate::ToolContext;
use crate::session::Session;

/// A plan, and the session's values of the variables that the call may see.
pub(super) struct Held {
    pub(super) plan: Plan,
    pub(super) granted: BTreeMap<OsString, OsString>,
}

impl Held {
    pub(super) fn from_context(context: &ToolContext) -> Result<Self, PlanError> {
        let plan = shell_plan(context.authority(), context.own(), context.session())?;
        let granted = variables(&plan, context);
        Ok(Self { plan, granted })
    }

    /// The plan of one program, which also gets these variables. The caller's own values win over the session's.
    pub(super) fn with(&self, env: BTreeMap<String, String>) -> (Plan, BTreeMap<OsString, OsString>) {
        let mut granted = self.granted.clone();
        for (name, value) in &env {
            if let Some(known) = granted.get_mut(OsString::from(name).as_os_str()) {
                *known = value.into();
            }
        }
        (self.plan.clone().with_variables(env), granted)
    }
}

/// The plan of the sandboxes that hold a call of `shell` to an authority on this host, where these directories are
/// Bailiwick's own.
///
/// # Errors
/// Why there is no such plan: a granted path cannot be looked at, or the authority cannot be planned.
pub fn shell_plan<'a>(
    authority: &Authority,
    mut own: impl Iterator<Item = &'a Path>,
    session: &Session,
) -> Result<Plan, PlanError> {
    let planner = own.try_fold(HostPlanner::default().with_home(session.home()), HostPlanner::hiding)?;
    let planner = session.locked().iter().map(PathBuf::as_path).try_fold(planner, HostPlanner::locking)?;
    let plan = planner.authority_plan("shell", authority)?.with_secret_uses(session.secret_uses());
    // Programs are told of the authority that speaks for the hosts of brokered secrets.
    if plan.environment().brokered.is_empty() {
        return Ok(plan);
    }
    Ok(plan.with_variables(Brokering::variables()))
}

/// Those that are read are recorded; those that are injected are the grant's own doing.
fn variables(plan: &Plan, context: &ToolContext) -> BTreeMap<OsString, OsString> {
    let (session, wanted) = (context.session(), plan.environment());
    let mut granted = BTreeMap::new();
    let mut give = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            granted.insert(name.into(), value.into());
        }
    };
    if wanted.read_all {
        // "All" never means what makes programs load code.
        session
            .variables()
            .filter(|(name, _)| !is_loader(name))
            .for_each(|(name, value)| give(name, Some(value)));
    }
    for name in &wanted.injected {
        give(&name.value, session.variable(&name.value));
    }
    for name in &wanted.read {
        if let Ok(value) = context.env(&name.value) {
            give(&name.value, value);
        }
    }
    granted
}

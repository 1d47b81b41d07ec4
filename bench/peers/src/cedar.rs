//! Cedar, with a policy that says the same.

use std::hint::black_box;

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request};

const POLICY: &str = r#"
permit(principal, action == Action::"spawn", resource) when { context.name == "git" || context.name == "cargo" };
permit(principal, action == Action::"connect", resource) when { context.name == "api.github.com" };
permit(principal, action in [Action::"read", Action::"write"], resource)
  when { context.name == "/workspace" || context.name like "/workspace/*" };
permit(principal, action == Action::"inject", resource) when { context.name == "GITHUB_TOKEN" };
permit(principal, action == Action::"clock", resource);
"#;

pub fn ask(action: &str, name: &str) -> impl FnMut() -> bool + use<> {
    let policies: PolicySet = POLICY.parse().expect("a policy");
    let uid = |text: String| -> EntityUid { text.parse().expect("an entity") };
    let context = Context::from_json_value(serde_json::json!({ "name": name }), None).expect("a context");
    let action = uid(format!("Action::\"{action}\""));
    let request = Request::new(uid("Session::\"s\"".into()), action, uid("Thing::\"t\"".into()), context, None);
    let (request, authorizer, entities) = (request.expect("a request"), Authorizer::new(), Entities::empty());
    move || {
        let answer = authorizer.is_authorized(black_box(&request), black_box(&policies), &entities);
        answer.decision() == Decision::Allow
    }
}

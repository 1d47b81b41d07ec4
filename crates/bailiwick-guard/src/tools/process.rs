//! A tool that is one program: its arguments become a command line, and the program runs in a sandbox that holds the
//! tool's policy and the grant.
//!
//! Fails closed when: this host, or the given [`Sandbox`], cannot hold what the call may touch. Then nothing is started.

use bailiwick_manifest::ToolPolicy;
use bailiwick_policy::enforcement::Coverage;
use bailiwick_policy::plan::Plan;
use serde_json::{Value, json};

use super::{Shell, shell_plan};
use crate::gate::ToolContext;
use crate::outcome::Output;
use crate::tool::{Tool, ToolError, ToolFault};

type CommandLine = dyn Fn(&Value) -> Vec<String> + Send + Sync;

/// Something that can hold a program to a plan, other than the native sandbox.
pub trait Sandbox: Send + Sync + 'static {
    /// Its name, for results.
    fn name(&self) -> &str;

    /// How well it would hold a plan. It must not say more than is true: nothing is started below the plan's floor.
    fn coverage(&self, plan: &Plan) -> Coverage;

    /// Runs a command line, held to a plan, to its end.
    ///
    /// # Errors
    /// If it could not be started or watched.
    fn run(&self, plan: &Plan, argv: &[String]) -> std::io::Result<SandboxRun>;
}

/// How a program in a [`Sandbox`] ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRun {
    /// Its exit code; `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it printed to its standard error.
    pub stderr: String,
}

/// A tool that runs one program. Made by [`process_tool`].
pub struct ProcessTool {
    name: String,
    description: String,
    schema: Value,
    policy: ToolPolicy,
    command: Box<CommandLine>,
    sandbox: Option<Box<dyn Sandbox>>,
}

/// A tool that runs the program that `command` names for the arguments of a call: first the program, then its
/// arguments. It runs confined to what was granted and `policy` allows; where that cannot be held, it does not run.
///
/// # Examples
/// ```
/// use bailiwick_guard::tools::process_tool;
/// use bailiwick_manifest::{Risk, ToolPolicy};
///
/// let policy = ToolPolicy::builder().risk(Risk::Low).read(["/data/**"]).write([]).no_network().build()?;
/// let tool = process_tool("count", policy, |args| {
///     vec!["wc".into(), "-l".into(), args["path"].as_str().unwrap_or_default().into()]
/// });
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
pub fn process_tool(
    name: impl Into<String>,
    policy: ToolPolicy,
    command: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static,
) -> ProcessTool {
    ProcessTool {
        name: name.into(),
        description: String::new(),
        schema: json!({ "type": "object" }),
        policy,
        command: Box::new(command),
        sandbox: None,
    }
}

impl ProcessTool {
    /// The same tool, described to people and models.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// The same tool, with the JSON Schema of its arguments.
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.schema = schema;
        self
    }

    /// The same tool, in another sandbox than the native one.
    #[must_use]
    pub fn in_sandbox(mut self, sandbox: impl Sandbox) -> Self {
        self.sandbox = Some(Box::new(sandbox));
        self
    }
}

impl Tool for ProcessTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn policy(&self) -> Option<&ToolPolicy> {
        Some(&self.policy)
    }

    fn footprint(&self, args: &Value) -> usize {
        Shell.footprint(args)
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let argv = (self.command)(&args);
        let Some((program, rest)) = argv.split_first() else {
            return Err(ToolError::failed(format!("{}: its command line is empty", self.name)));
        };
        match &self.sandbox {
            None => Shell.invoke(json!({ "program": program, "args": rest }), context).await,
            Some(sandbox) => run_in(sandbox.as_ref(), program, &argv, context),
        }
    }
}

fn run_in(
    sandbox: &dyn Sandbox,
    program: &str,
    argv: &[String],
    context: &ToolContext,
) -> Result<Output, ToolError> {
    context.check_exec(program)?;
    let plan = shell_plan(context.authority(), context.own(), context.session())
        .map_err(|error| ToolError::failed(error.to_string()))?;
    let coverage = sandbox.coverage(&plan);
    if let Some(short) = coverage.below(&plan.floor()).first() {
        return Err(ToolError::failed(format!("{} cannot hold this call: {short}", sandbox.name())));
    }
    let failed = |source| ToolFault::Exec { program: program.to_owned(), source };
    let SandboxRun { exit_code, stdout, stderr } = sandbox.run(&plan, argv).map_err(failed)?;
    let levels = coverage.iter().map(|(aspect, held)| (aspect.as_str(), held.level.as_str()));
    let enforcement: Value = levels.map(|(name, level)| (name.to_owned(), Value::from(level))).collect();
    Ok(json!({
        "exit_code": exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "sandbox": sandbox.name(),
        "enforcement": enforcement,
    })
    .into())
}

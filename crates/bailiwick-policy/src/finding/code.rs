//! The one table of finding and difference codes. `docs/codes.md` is printed from it.
//!
//! A code never changes its meaning and is never reused.

use std::fmt;

/// How much a finding or a difference matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, never a failure.
    Info,
    /// A reviewer should look.
    Medium,
    /// A reviewer must decide.
    High,
    /// The text cannot be used.
    Error,
}

impl Severity {
    /// The lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! codes {
    ($($variant:ident $text:literal $severity:ident $(alias $alias:literal)? : $meaning:literal;)+) => {
        crate::code_table! {
            /// A stable name for one kind of finding or difference.
            Code { $($variant $text : $meaning;)+ }
        }

        impl Code {
            /// How much it matters.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)+ }
            }

            /// The name other capability compilers use for the same thing.
            #[must_use]
            pub const fn alias(self) -> Option<&'static str> {
                match self { $(Self::$variant => codes!(@alias $($alias)?),)+ }
            }
        }
    };
    (@alias) => { None };
    (@alias $alias:literal) => { Some($alias) };
}

codes! {
    CapMalformed "cap-malformed" Error alias "CAP_MALFORMED": "a capability is not of the form `kind:actions:scope`";
    CapControl "cap-control" Error: "a capability contains a control character";
    CapWhitespace "cap-whitespace" Error: "a capability starts or ends with white space";
    CapTooLong "cap-too-long" Error: "a capability is longer than the limit";
    CapUnknownKind "cap-unknown-kind" Error alias "CAP_UNKNOWN_KIND": "the kind of a capability is not known";
    CapActionsEmpty "cap-actions-empty" Error alias "CAP_ACTIONS_EMPTY": "a capability names no action, or an empty one";
    CapActionUnknown "cap-action-unknown" Error alias "CAP_ACTION_UNKNOWN": "the kind has no such action";
    CapActionDuplicate "cap-action-duplicate" Error: "an action is named twice";
    CapActionMixed "cap-action-mixed" Error: "actions that take different scopes stand in one capability";
    CapScopeMissing "cap-scope-missing" Error: "the scope is missing";
    CapScopeUnexpected "cap-scope-unexpected" Error: "the kind takes no scope";
    RefinementMalformed "refinement-malformed" Error: "a refinement is not `name=value`";
    RefinementUnknown "refinement-unknown" Error: "no kind has this refinement";
    RefinementWrongKind "refinement-wrong-kind" Error: "the refinement belongs to another kind or action";
    RefinementValue "refinement-value" Error: "the refinement does not take this value";
    RefinementDuplicate "refinement-duplicate" Error: "a refinement is given twice";
    RefinementNeedless "refinement-needless" Error: "the refinement says nothing here";
    PathRelative "path-relative" Error: "a path does not start at the root";
    PathDot "path-dot" Error: "a path has a `.` or `..` component";
    PathEmptyComponent "path-empty-component" Error: "a path has an empty component";
    PathGlob "path-glob" Error: "a glob is malformed";
    PathTooLong "path-too-long" Error: "a path is longer than the limit";
    PathTooManyGlobs "path-too-many-globs" Error: "a path pattern has more components after its first glob than the limit";
    PathVariable "path-variable" Error: "a path variable is malformed or stands where none may";
    PathVariableUnresolved "path-variable-unresolved" Error: "a path variable has no value on this host";
    PathVariableValue "path-variable-value" Error: "the value of a path variable is not a clean absolute path";
    PortInvalid "port-invalid" Error: "a port is not a number from 1 to 65535, a range, or `*`";
    HostInvalid "host-invalid" Error: "a host is not a DNS name, an address, a CIDR block or `*`";
    HostWildcard "host-wildcard" Error: "`*` stands elsewhere than in front of a whole name";
    HostNumeric "host-numeric" Error: "a host is an IPv4 address in an unusual spelling";
    HostIdna "host-idna" Error: "a host with non-ASCII letters is not a valid internationalised name";
    CidrInvalid "cidr-invalid" Error: "a CIDR block is malformed or has bits set beyond its prefix";
    MethodUnknown "method-unknown" Error: "an HTTP method is not known";
    UrlInvalid "url-invalid" Error: "a URL has parts that a capability cannot hold";
    UrlScheme "url-scheme" Error: "a URL's scheme is not the capability's action";
    ExecRelative "exec-relative" Error: "a program with `/` is not an absolute path";
    ExecName "exec-name" Error: "a program name or path has characters that none should have";
    EnvName "env-name" Error: "an environment variable is not UPPER_SNAKE";
    EnvWildcard "env-wildcard" Error: "`*` stands for an environment variable where it may not";
    BrokerHost "env-broker" Error: "a secret is brokered for exact names of hosts only, and the program is not given it besides";
    EnvLoader "env-loader" Error: "the variable makes programs load code";
    IpcUnknown "ipc-unknown" Error: "an ipc endpoint is not known";
    IpcPath "ipc-path" Error: "a Unix socket path is not an absolute path to a socket";
    AssertId "assert-id" Error: "an assertion's id is malformed";
    AssertQuote "assert-quote" Error: "an assertion's description is not a quoted text";
    SourceEncoding "source-encoding" Error: "a file is not UTF-8";
    SourceTooLarge "source-too-large" Error: "a file is larger than the limit";
    SourceSyntax "source-syntax" Error: "a file is not well-formed TOML or JSON";
    SourceNesting "source-nesting" Error: "a file nests deeper than the limit";
    ManifestShape "manifest-shape" Error alias "MANIFEST_SHAPE": "a field is missing or has the wrong type";
    ManifestUnknownField "manifest-unknown-field" Error: "a field is not known";
    ManifestDuplicateField "manifest-duplicate-field" Error: "a field is given twice";
    ManifestDuplicateTool "manifest-duplicate-tool" Error: "two tools have the same name";
    ManifestName "manifest-name" Error: "a name is empty, too long or has characters it should not";
    ManifestLimit "manifest-limit" Error: "a limit is malformed or zero";
    ManifestPin "manifest-pin" Error: "a pin is not a SHA-256 hash, or pins an undeclared tool";
    ManifestSecret "manifest-secret" Error: "how a secret is used is malformed, or said of a variable that is not brokered";
    ManifestVariable "manifest-variable" Error: "a variable of a manifest has no source, or one that is malformed";
    ManifestRule "manifest-rule" Error: "a rule on the arguments of a tool is malformed";
    ManifestTooMany "manifest-too-many" Error: "a manifest has more tools or capabilities than the limit";
    PolicyMode "policy-mode" Error: "a policy stance is not one of those known";
    PolicyRisk "policy-risk" Error: "a risk is not low, medium, high or critical";
    CapabilityBeyondPolicy "capability-beyond-policy" Medium: "a tool's own policy hides a line, or an action or refinement of it: it is granted nowhere";
    ConstraintUnknownTool "constraint-unknown-tool" Error: "`only_after` names a tool the manifest does not have";
    ConstraintSelf "constraint-self" Error: "a tool can only run after itself";
    CaveatsShape "caveats-shape" Error: "an axis of the caveats is malformed or missing";
    CaveatsUnknownAxis "caveats-unknown-axis" Error: "the caveats name an axis that does not exist";
    SnapshotHash "snapshot-hash" Error: "a snapshot's hash is not the hash of its content";
    SnapshotVersion "snapshot-version" Error: "a snapshot is of a version that is not known";
    AcceptShape "accept-shape" Error: "an accepted risk is malformed";
    AcceptExpired "accept-expired" Medium: "an accepted risk has expired and no longer counts";
    AcceptUnused "accept-unused" Info: "an accepted risk matches no difference";
    PlanInexpressible "plan-inexpressible" Error: "what is allowed cannot be written as a list of rules";
    GuardrailShape "guardrail-shape" Error: "a field of a guardrails file is missing or has the wrong type";
    GuardrailUnknownField "guardrail-unknown-field" Error: "a guardrails file has a table or key that is not known";
    GuardrailTarget "guardrail-target" Error: "a target or condition of a guardrail is malformed";
    GuardrailRegex "guardrail-regex" Error: "a pattern of a guardrail is not a regular expression, or too large";
    GuardrailDuplicateName "guardrail-duplicate-name" Error: "two validators have the same name";
    GuardrailScript "guardrail-script" Error: "a guardrail's script is missing, cannot be executed, or lies outside the project";
    GuardrailExample "guardrail-example" Error: "a guard does not do what an example beside it says";
    GuardrailDeadTarget "guardrail-dead-target" Medium: "nothing is known to be what a guardrail's target names";
    GuardrailDeadArgument "guardrail-dead-argument" Medium: "no known tool of the target has the argument that a guardrail names";
    GuardrailPartialArgument "guardrail-partial-argument" Info: "some agents' tools of the target do not have the argument that a guardrail names";
    GuardrailShellUnseen "guardrail-shell-unseen" Info: "a rule on reading tools does not see what is read with the shell";
    TargetUnsupported "target-unsupported" Error alias "ADAPTER_UNSUPPORTED": "a target cannot hold what the manifest declares";
    ScanUseUndeclared "scan-use-undeclared" Error: "a tool uses something that it does not declare";
    ScanKindUndeclared "scan-kind-undeclared" Error: "a tool does what the source does not name, and declares nothing of the kind";
    ScanToolUndeclared "scan-tool-undeclared" Error: "the source defines a tool that the manifest does not have";
    ScanPolicy "scan-policy" Error: "the policy beside a tool in the source cannot be read";
    ScanUnknown "scan-unknown" Medium: "something could not be followed; it fails where the scan is strict";
    ScanDynamic "scan-dynamic" Info: "what a tool does depends on what it is given; it fails where the scan is strict";
    ScanUnused "scan-unused" Info: "a capability is declared and was not seen to be used";
    ScanToolUnseen "scan-tool-unseen" Info: "the manifest has a tool that the source does not define";
    ScanNoTools "scan-no-tools" Error: "the source is an MCP server's, and no tool was found in it";
    ScanToolUnfound "scan-tool-unfound" Error: "the server lists a tool that the source was not seen to define";
    ScanToolUnlisted "scan-tool-unlisted" Info: "the source defines a tool that the server does not list";
    TooManyFindings "too-many-findings" Error: "more findings than are shown";
    ToolAddedHighRisk "tool.added.high-risk" High: "a new tool declares high or critical risk";
    ToolAdded "tool.added" Medium: "a new tool; how much it matters follows from what it may touch";
    ToolRenamed "tool.renamed" Info: "a tool has a new name and the same declaration";
    ToolRemoved "tool.removed" Info: "a tool is gone";
    ToolRiskIncreased "tool.risk.increased" High: "a tool declares a higher risk";
    ToolRiskDecreased "tool.risk.decreased" Medium: "a tool declares a lower risk: its review may change";
    ToolExecWidened "tool.exec.widened" High: "a tool may start more programs";
    ToolNetworkWidened "tool.network.widened" High: "a tool may reach more of the network";
    ToolFilesystemWriteWidened "tool.filesystem.write.widened" High: "a tool may change, create or delete more files";
    ToolFilesystemReadWidened "tool.filesystem.read.widened" Medium: "a tool may read more files";
    ToolEnvironmentWidened "tool.environment.widened" Medium: "a tool may see more environment variables";
    ToolIpcWidened "tool.ipc.widened" High: "a tool may reach more local sockets";
    ToolClockWidened "tool.clock.widened" Info: "a tool may see more of the clock";
    ToolNarrowed "tool.narrowed" Info: "a tool may touch less";
    ServerWidened "server.widened" High: "the server as a whole may touch more";
    ServerNarrowed "server.narrowed" Info: "the server as a whole may touch less";
    ServerCommandChanged "server.command.changed" High: "another command is started, or the same with other arguments or environment";
    LimitsRelaxed "limits.relaxed" Medium: "a resource limit was raised or removed";
    PolicyRemoved "policy.removed" High: "a tool's policy is gone";
    ConstraintsRelaxed "constraints.relaxed" Medium: "a usage constraint was loosened or removed";
    ApprovalRemoved "approval.removed" High: "a tool no longer asks a person";
    EnforcementDisabled "enforcement.disabled" High: "a policy, an assertion or a pin that was held is no longer";
    PinChanged "pin.changed" High: "a pinned tool or instruction has another hash";
    ManifestVersionChanged "manifest.version.changed" Info: "the version is another";
    ManifestNameChanged "manifest.name.changed" Info: "the name is another";
    DiffUndecided "diff.undecided" High: "containment could not be decided within the budget; treated as widened";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn texts_and_aliases_are_unique() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        let aliases: Vec<_> = Code::ALL.iter().filter_map(|code| code.alias()).collect();
        let unique: BTreeSet<_> = aliases.iter().collect();
        assert_eq!(unique.len(), aliases.len());
    }
}

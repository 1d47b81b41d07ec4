//! OpenCode. It has no hooks: its plugin (`opencode_plugin.js`) sends events in our own format.

use super::super::Agent;
use super::super::settings::{HookFile, HookForm};
use super::GENERIC;

pub(super) const AGENT: Agent = Agent {
    name: "opencode",
    title: "OpenCode, through a plugin",
    settings: Some(HookFile {
        user: ".config/opencode/plugin/bailiwick.js",
        project: ".opencode/plugin/bailiwick.js",
        directories: [".config/opencode", ".opencode"],
        form: HookForm::Block(include_str!("opencode_plugin.js")),
    }),
    shell: "bash",
    ..GENERIC
};

//! A run whose writes go to a copy-on-write layer: what becomes of it when the command has ended.

use std::path::PathBuf;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::render::style;
use bailiwick_command::terminal;
use bailiwick_command::written_trees::{carry_over, list, trees};
use bailiwick_launch::Layer;
use bailiwick_policy::plan::Plan;

/// Lists what a command changed in its layer, and carries it over if that was asked for and the command succeeded.
pub(super) fn ended(mut answer: Answer, layer: Layer, carries: bool, plan: &Plan) -> anyhow::Result<Answer> {
    let trees = trees(layer)?;
    let count = list(&trees)?;
    let changes = style::count(count, "change", "changes");
    if count == 0 {
        terminal::remark("dry run: nothing would change\n");
    } else if !carries {
        terminal::remark(&format!(
            "dry run: {changes}, none of them on the host; `--commit` carries them over\n"
        ));
    } else if answer.exit != Exit::Program(0) {
        terminal::remark(&format!(
            "dry run: the command failed, so none of its {changes} was carried over\n"
        ));
    } else {
        let named: Vec<PathBuf> = plan.named().iter().map(|path| PathBuf::from(path.to_string())).collect();
        match carry_over(&trees, &named) {
            Ok(count) => terminal::remark(&format!(
                "dry run: {} carried over\n",
                style::count(count, "change was", "changes were")
            )),
            Err(why) => {
                answer.complaint += &super::complaint(&format!("{why:#}"));
                answer.exit = Exit::Program(125);
            }
        }
    }
    Ok(answer)
}

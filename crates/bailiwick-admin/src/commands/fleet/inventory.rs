//! `bailiwick fleet report`: what runs on this machine, sent to the hub now.

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::member_link::{block_on, machine, reporter, servers_here};
use bailiwick_command::render::{json as render_json, style};
use bailiwick_member::report::Reported;
use serde_json::json;

pub(super) fn report(format: AnswerFormat) -> anyhow::Result<Answer> {
    let Some(link) = machine()? else {
        return Ok(refused(Exit::Found, "this machine is in no fleet: `bailiwick enroll --token-file FILE`"));
    };
    let (log, servers) = servers_here();
    let Reported { heads, servers } = match block_on(reporter(&link)?.report(log, servers))? {
        Ok(reported) => reported,
        Err(why) => return Ok(refused(Exit::Found, &why.to_string())),
    };
    let text = match format {
        AnswerFormat::Json => render_json::document(
            &json!({ "format": "bailiwick.fleet-report/1", "heads": heads, "servers": servers }),
        ),
        AnswerFormat::Text => {
            let inventory = servers.map_or_else(
                || "the inventory is as it was".to_owned(),
                |count| format!("the inventory of {}", style::count(count, "server", "servers")),
            );
            let heads = style::count(heads, "journal head", "journal heads");
            format!("{}: {heads}, {inventory}\n", style::good("sent"))
        }
    };
    Ok(Answer::result(Exit::Fine, text))
}

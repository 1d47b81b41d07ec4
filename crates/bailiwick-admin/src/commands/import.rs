//! `bailiwick import`: a manifest drafted from what others say of a server already.

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::output::Existing;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, input, output, terminal};
use bailiwick_learn::{ImportFrom, ImportOptions, import};
use bailiwick_manifest::sensitive::SensitivePlaces;
use bailiwick_policy::path::AbsPath;

use crate::args::import::Import;

pub(super) fn run(args: &Import) -> anyhow::Result<Answer> {
    let source = match input::read(&args.file) {
        Ok(source) => source,
        Err(useless) => return Ok(useless.refusal()),
    };
    let from = ImportFrom::ALL.into_iter().find(|from| from.as_str() == args.from);
    let from = from.with_context(|| format!("`{}` is no form that is known", args.from))?;
    let home = facts::home().and_then(|home| AbsPath::new(home.to_str()?).ok());
    let name = args.file.file_stem().map_or_else(|| "server".into(), |name| name.to_string_lossy());
    let options = ImportOptions {
        name: name.into_owned(),
        server: args.server.clone(),
        places: SensitivePlaces::new(home.clone(), []),
        home,
    };
    let imported = match import(from, source.text(), &options) {
        Ok(imported) => imported,
        Err(why) => {
            let why = format!("`{}`: {why}", args.file.display());
            return Ok(Answer::refusal(Exit::Invalid, input::unreadable(&why)));
        }
    };
    if let Some(path) = &args.out {
        output::write(path, &imported.text, Existing::Replace)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    terminal::remark(&format!(
        "{}: {}, {}\n",
        style::good("drafted"),
        style::count(imported.lines, "line", "lines"),
        style::count(imported.questions, "question", "questions")
    ));
    if let Some(path) = &args.out {
        let path = escape::line(&path.display().to_string());
        terminal::remark(&format!("next: bailiwick audit {path} -- COMMAND\n"));
    }
    Ok(Answer::result(Exit::Fine, if args.out.is_some() { String::new() } else { imported.text }))
}

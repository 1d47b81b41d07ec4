//! The credential of a server that runs elsewhere, from `--secret`. It is read at the start, and nothing shows it.

use anyhow::Context as _;
use bailiwick_broker::SecretSource as _;
use bailiwick_command::args::secret::SecretOptions;

/// The one secret that was given: its name and its value.
///
/// # Errors
/// If its source has none; the source is named, and never what it holds.
pub(super) fn given_secret(options: &SecretOptions) -> anyhow::Result<Option<(String, String)>> {
    let Some(first) = options.secrets.first() else { return Ok(None) };
    anyhow::ensure!(
        options.secrets.len() == 1,
        "a server that runs elsewhere has one credential: give one `--secret`"
    );
    let name = &first.name;
    let held = first.source.fetch().with_context(|| format!("the secret `{name}` is not there"))?;
    let value = held.read().with_context(|| format!("the secret `{name}` cannot be read"))?;
    let text = String::from_utf8(value.expose().to_vec());
    Ok(Some((name.clone(), text.ok().with_context(|| format!("the secret `{name}` is not text"))?)))
}

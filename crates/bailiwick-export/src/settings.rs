//! `[export.otlp]`: the collector that `bailiwick export` sends to.

use bailiwick_manifest::document::{self, Fields};
use bailiwick_policy::finding::{Code, Collector, Findings};

/// A collector, as the user's settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSetting {
    /// Its URL, below which are `v1/logs`, `v1/traces` and `v1/metrics`.
    pub endpoint: String,
    /// Headers of every request, each with the source of its value, as it is written.
    pub headers: Vec<(String, String)>,
}

/// The table `[export.otlp]`, if it is there.
///
/// # Errors
/// What is wrong with the file or that table.
///
/// # Examples
/// ```
/// use bailiwick_export::otlp_setting;
///
/// let text = "[export.otlp]\nendpoint = 'https://collector.example'\nheaders = { authorization = 'env:OTLP' }\n";
/// let collector = otlp_setting(text)?.unwrap();
/// assert_eq!(collector.headers, [("authorization".to_owned(), "env:OTLP".to_owned())]);
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
pub fn otlp_setting(text: &str) -> Result<Option<OtlpSetting>, Findings> {
    let node = document::parse(text)?;
    let entries = node.table(Code::CaveatsShape)?;
    let Some(export) = entries.iter().find(|entry| entry.key == "export") else { return Ok(None) };
    let mut found = Collector::default();
    let mut fields = Fields::from_node(&export.node, "the table `export`", Code::CaveatsShape)?;
    let otlp = fields.optional("otlp");
    let read = match otlp.map(|node| Fields::from_node(node, "the table `export.otlp`", Code::CaveatsShape)) {
        None => None,
        Some(otlp) => {
            let mut otlp = otlp?;
            let endpoint = found.keep(otlp.required("endpoint", Code::CaveatsShape));
            let endpoint = endpoint.and_then(|node| found.keep(node.text(Code::CaveatsShape)));
            let mut headers = Vec::new();
            if let Some(entries) =
                otlp.optional("headers").and_then(|node| found.keep(node.table(Code::CaveatsShape)))
            {
                for entry in entries {
                    let source = found.keep(entry.node.text(Code::CaveatsShape));
                    headers.extend(source.map(|source| (entry.key.to_string(), source.to_owned())));
                }
            }
            otlp.finish(Code::CaveatsShape, &mut found);
            endpoint.map(|endpoint| OtlpSetting { endpoint: endpoint.to_owned(), headers })
        }
    };
    fields.finish(Code::CaveatsShape, &mut found);
    found.finish(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_read_whole_or_not_at_all() {
        assert_eq!(otlp_setting("[wrap]\naudit = true\n").unwrap(), None);
        assert_eq!(otlp_setting("[export]\n").unwrap(), None);
        let read = otlp_setting("[export.otlp]\nendpoint = 'https://c.example'\n").unwrap().unwrap();
        assert_eq!((read.endpoint.as_str(), read.headers.len()), ("https://c.example", 0));
        for text in [
            "export = 1\n",
            "[export]\notlp = 'https://c.example'\n",
            "[export.otlp]\n",
            "[export.otlp]\nendpoint = 1\n",
            "[export.otlp]\nendpoint = 'https://c.example'\nheader = 'x'\n",
            "[export.otlp]\nendpoint = 'https://c.example'\nheaders = { a = 1 }\n",
            "[export.oltp]\nendpoint = 'https://c.example'\n",
        ] {
            assert!(otlp_setting(text).is_err(), "{text}");
        }
    }
}

// Texts that attackers would send, made from families: what runs in HTML, in templates, in URLs, in SVG; what hides and
// reorders; what is long. Each that could run sets `window.canary`.
const RUN = "window.canary=1";
const TAGS = ["script", "img", "svg", "iframe", "body", "details", "video", "audio", "object", "embed", "math", "style", "input", "select", "textarea", "marquee", "form", "base", "link", "meta", "template", "table", "a", "b"];
const EVENTS = ["onerror", "onload", "onclick", "onfocus", "ontoggle", "onmouseover", "onanimationstart", "onbegin"];
const BREAKS = ["", "\"", "'", "`", "\">", "'>", "-->", "]]>", "</script>", "</style>", "</textarea>", "</title>", "*/", "\\", "\\\"", "\u0000", "\n", "\t"];
const TEMPLATES = ["{{constructor.constructor('RUN')()}}", "${RUN}", "#{RUN}", "<%= RUN %>", "{{7*7}}", "[[RUN]]", "{%RUN%}", "@{RUN}", "*{RUN}", "${{<%[%'\"}}%\\"];
const URLS = ["javascript:RUN", "JaVaScRiPt:RUN", "java\nscript:RUN", "data:text/html,<script>RUN</script>", "vbscript:RUN", "//evil.example/x", "http://evil.example/<img src=x onerror=RUN>", "blob:RUN", "file:///etc/passwd"];
const ODD = ["\u202e", "\u202d", "\u2066", "\u2067", "\u2068", "\u2069", "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u061c", "\u00ad", "\ufeff", "\u2060", "\u180e", "\u3164", "\u115f", "\uffa0", "\u2800", "\u034f", "\u2028", "\u2029", "\u0085", "\u001b[2J", "\u0007", "\u0008", "\u007f", "\ufe0f", "\u{e0041}\u{e0042}", "\u{e0100}", "\u{1d173}", "\ufff9", "\ue000", "\u{10ffff}", "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301"];
const WHOLE = ["<svg><script>RUN</script></svg>", "<svg><animate onbegin=RUN attributeName=x>", "<math><mtext><table><mglyph><style><img src=x onerror=RUN>", "<noscript><p title=\"</noscript><img src=x onerror=RUN>\">", "<img src=x:x onerror=RUN//", "<<script>RUN//<</script>", "<a href=javascript:RUN>x</a>", "<iframe srcdoc='<script>parent.canary=1</script>'>", "&lt;script&gt;RUN&lt;/script&gt;", "&#60;script&#62;RUN&#60;/script&#62;", "%3Cscript%3ERUN%3C/script%3E", "\\u003cscript\\u003eRUN\\u003c/script\\u003e", "<!--<img src=x onerror=RUN>-->", "<x contenteditable onblur=RUN>", "__proto__", "constructor", "toString", "hasOwnProperty", "null", "undefined", "NaN", "-1", "0", "../../../etc/passwd", "' OR 1=1 --", "$(touch /tmp/x)", "`id`", "; rm -rf ~", "|| true"];

export function families(least) {
  const all = [];
  for (const tag of TAGS) for (const event of EVENTS) all.push(`<${tag} src=x ${event}="RUN" autofocus tabindex=0>`);
  for (const stop of BREAKS) for (const inner of ["<script>RUN</script>", "<img src=x onerror=RUN>", " onmouseover=RUN x=", ";RUN;//"]) all.push(stop + inner);
  for (const odd of ODD) all.push(odd, `invoice${odd}fdp.exe`, `${odd}<img src=x onerror=RUN>${odd}`, odd.repeat(200));
  all.push(...TEMPLATES, ...URLS, ...WHOLE);
  all.push("A".repeat(1 << 20), "<img src=x onerror=RUN>".repeat(45000), "\u200b".repeat(300000), "{\"a\":".repeat(2000), "\u202e".repeat(100000));
  for (let at = 0; all.length < least; at += 1) all.push(BREAKS[at % BREAKS.length] + TEMPLATES[at % TEMPLATES.length] + ODD[at % ODD.length] + WHOLE[at % WHOLE.length] + at);
  return all.map((text) => text.replaceAll("RUN", RUN));
}

//! The shapes of bodies and answers, as JSON Schema; tests hold the answers against them.

use serde_json::{Map, Value, json};

/// Every shape by its name.
pub(super) fn schemas() -> Map<String, Value> {
    let parts = [node(), hosts(), urls(), seeds_and_letters(), orders()];
    parts.into_iter().flatten().map(|(name, shape)| (name.to_owned(), shape)).collect()
}

type Shapes = Vec<(&'static str, Value)>;

/// An object whose fields are all there.
fn object(fields: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    with_required(optional(fields), &names)
}

/// An object whose fields may be absent.
fn optional(fields: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone())).collect();
    json!({ "type": "object", "properties": properties })
}

/// A body: fields that nobody knows are refused. Answers may get more fields.
fn closed(mut shape: Value) -> Value {
    if let Some(parts) = shape.as_object_mut() {
        parts.insert("additionalProperties".to_owned(), json!(false));
    }
    shape
}

/// With only these fields always there.
fn with_required(mut shape: Value, names: &[&str]) -> Value {
    if let Some(parts) = shape.as_object_mut() {
        parts.insert("required".to_owned(), json!(names));
    }
    shape
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn whole() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn truth() -> Value {
    json!({ "type": "boolean" })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn one_of(names: &[&str]) -> Value {
    json!({ "type": "string", "enum": names })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn map(values: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": values })
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The shape, or null.
fn or_null(shape: &Value) -> Value {
    json!({ "anyOf": [shape, { "type": "null" }] })
}

fn page(items: &str) -> Value {
    object(&[("items", list(&named(items))), ("next", or_null(&text()))])
}

fn output_figures() -> Value {
    object(&[
        ("name", text()),
        ("purpose", one_of(&["search", "ai-train", "ai-input", "archive"])),
        ("documents", whole()),
        ("left_out", map(&whole())),
    ])
}

fn node() -> Shapes {
    let urls = ["known", "queued", "in_flight", "pages_in_flight", "dead", "deferred", "sleeping"];
    let hosts = ["known", "resident", "ready", "waiting", "parked", "in_flight"];
    let counts =
        |names: &[&str]| object(&names.iter().map(|name| (*name, whole())).collect::<Vec<_>>());
    let queue = object(&[("waiting", whole()), ("busy", whole()), ("capacity", or_null(&whole()))]);
    let parked = object(&[
        ("host_key", text()),
        ("reason", text()),
        ("until", or_null(&time())),
        ("queued", whole()),
        ("needs_operator", truth()),
    ]);
    let state = one_of(&["running", "paused", "draining", "degraded"]);
    let status = object(&[
        ("state", state.clone()),
        ("reasons", list(&text())),
        ("started_at", time()),
        ("version", text()),
        ("pages", whole()),
        ("pages_per_second", number()),
        ("bytes", whole()),
        ("urls", counts(&urls)),
        ("hosts", counts(&hosts)),
        ("outcomes", map(&whole())),
        ("lag_seconds", number()),
        ("outputs", list(&output_figures())),
        ("queues", map(&queue)),
        ("next_wake", or_null(&time())),
        ("parked", list(&parked)),
    ]);
    let actor = object(&[
        ("name", text()),
        ("kind", text()),
        ("mailbox", or_null(&whole())),
        ("restarts", whole()),
        ("children", list(&named("Actor"))),
    ]);
    let node = object(&[
        ("node", text()),
        ("state", state),
        ("started_at", time()),
        ("version", text()),
        ("shards", list(&whole())),
    ]);
    let shard = object(&[
        ("shard", whole()),
        ("node", text()),
        ("state", one_of(&["up", "degraded", "down"])),
        ("reasons", list(&text())),
        ("epoch", or_null(&whole())),
        ("hosts", or_null(&whole())),
        ("urls", or_null(&whole())),
    ]);
    vec![
        ("Status", status),
        ("Actor", actor),
        ("Cluster", object(&[("nodes", list(&node)), ("shards", list(&shard))])),
        ("Health", object(&[("status", text())])),
        ("OpenApi", json!({ "type": "object" })),
    ]
}

fn host_phase() -> Value {
    one_of(&["ready", "in_flight", "waiting", "parked", "idle"])
}

fn host_summary() -> Vec<(&'static str, Value)> {
    vec![
        ("host_key", text()),
        ("state", host_phase()),
        ("reason", or_null(&text())),
        ("next_allowed_at", or_null(&time())),
        ("in_flight", whole()),
        ("queued", whole()),
        ("pages_today", whole()),
    ]
}

fn hosts() -> Shapes {
    let robots = object(&[
        ("state", text()),
        ("fetched_at", or_null(&time())),
        ("expires_at", or_null(&time())),
        ("rules", whole()),
        ("crawl_delay", or_null(&number())),
        ("sitemaps", list(&text())),
    ]);
    let backoff = object(&[("refusals", whole()), ("failures", whole()), ("slowdown", number())]);
    let set = [
        ("min_delay", or_null(&number())),
        ("max_in_flight", or_null(&whole())),
        ("daily_pages", or_null(&whole())),
    ];
    let mut allowance = vec![("paused", truth()), ("version", whole())];
    allowance.extend(set.clone());
    let mut patch = vec![("paused", or_null(&truth()))];
    patch.extend(set);
    let counts =
        ["known", "queued", "deferred", "sleeping", "dead", "seeds"].map(|name| (name, whole()));
    let mut host = host_summary();
    host.extend([
        ("robots", robots),
        ("delay_seconds", number()),
        ("delay_set_by", text()),
        ("backoff", backoff),
        ("allowance", object(&allowance)),
        ("budget", whole()),
        ("window", whole()),
        ("address", list(&text())),
        ("shard", whole()),
        ("epoch", whole()),
        ("restarts", whole()),
        ("resident", truth()),
        ("urls", object(&counts)),
    ]);
    vec![
        ("HostSummary", object(&host_summary())),
        ("HostList", page("HostSummary")),
        ("Host", object(&host)),
        ("HostPatch", closed(optional(&patch))),
    ]
}

fn archive() -> Value {
    or_null(&object(&[("file", text()), ("offset", whole()), ("length", whole())]))
}

fn urls() -> Shapes {
    let states = ["queued", "in_flight", "retrying", "sleeping", "fetched", "dead", "gone"];
    let url = object(&[
        ("url", text()),
        ("url_id", text()),
        ("host_key", text()),
        ("state", one_of(&states)),
        ("version", whole()),
        ("status", or_null(&whole())),
        ("outcome", or_null(&text())),
        ("reason", or_null(&text())),
        ("depth", whole()),
        ("priority", whole()),
        ("discovered_from", or_null(&text())),
        ("discovered_at", time()),
        ("last_fetched_at", or_null(&time())),
        ("next_fetch_at", or_null(&time())),
        ("attempts", whole()),
        ("digest", or_null(&text())),
        ("archive", archive()),
    ]);
    let kinds = ["discovered", "fetched", "parsed", "tombstone", "dead", "excluded", "host"];
    let event = optional(&[
        ("cursor", text()),
        ("type", one_of(&kinds)),
        ("at", time()),
        ("url", text()),
        ("url_id", text()),
        ("host_key", text()),
        ("rule", text()),
        ("version", whole()),
        ("status", or_null(&whole())),
        ("outcome", text()),
        ("bytes", whole()),
        ("digest", or_null(&text())),
        ("archive", archive()),
        ("changed", or_null(&truth())),
        ("parser_version", whole()),
        ("links", whole()),
        ("duplicate_of", or_null(&text())),
        ("reason", or_null(&text())),
        ("exclusion", text()),
        ("state", text()),
    ]);
    let event = with_required(event, &["cursor", "type", "at", "version"]);
    vec![("Url", url), ("Event", event), ("Why", why())]
}

fn why() -> Value {
    let step = object(&[
        ("step", text()),
        ("rule", or_null(&text())),
        ("value", or_null(&text())),
        ("result", one_of(&["pass", "wait", "refuse"])),
        ("reason", or_null(&text())),
    ]);
    let verdicts = ["fetched", "queued", "waiting", "refused", "dead", "unknown"];
    object(&[
        ("url", text()),
        ("normalised", or_null(&text())),
        ("verdict", one_of(&verdicts)),
        ("expected_at", or_null(&time())),
        ("reason", text()),
        ("trace", list(&step)),
    ])
}

fn seeds_and_letters() -> Shapes {
    let priority = json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 });
    let seed = optional(&[("url", text()), ("priority", priority), ("depth", or_null(&whole()))]);
    let seed = with_required(seed, &["url"]);
    let result = optional(&[
        ("url", text()),
        ("result", one_of(&["accepted", "known", "refused"])),
        ("reason", or_null(&text())),
    ]);
    let result = with_required(result, &["url", "result"]);
    let answer = object(&[
        ("accepted", whole()),
        ("known", whole()),
        ("refused", whole()),
        ("results", list(&result)),
    ]);
    let letter =
        object(&[("url", text()), ("reason", text()), ("attempts", whole()), ("last_at", time())]);
    let rule = ("rule", text());
    let wanted = optional(&[
        rule.clone(),
        ("reason", or_null(&text())),
        ("until", or_null(&time())),
        ("purge", truth()),
    ]);
    let exclusion = object(&[
        ("id", text()),
        rule,
        ("reason", or_null(&text())),
        ("until", or_null(&time())),
        ("made_at", time()),
        ("purge", or_null(&named("Purge"))),
    ]);
    let purge = object(&[
        ("state", one_of(&["waiting", "running", "done"])),
        ("ordered_at", time()),
        ("done_at", or_null(&time())),
        ("records", whole()),
        ("bytes", whole()),
        ("index_lines", whole()),
        ("page_records", whole()),
        ("urls", whole()),
        ("unreadable", whole()),
        ("failure", or_null(&text())),
    ]);
    let retry = optional(&[("urls", list(&text())), ("host", text()), ("all", truth())]);
    vec![
        ("Seed", closed(seed)),
        ("Seeds", closed(object(&[("urls", list(&named("Seed")))]))),
        ("SeedsAnswer", answer),
        ("Letter", letter),
        ("LetterList", page("Letter")),
        ("NewExclusion", closed(with_required(wanted, &["rule"]))),
        ("Purge", purge),
        ("Exclusion", exclusion),
        ("ExclusionList", page("Exclusion")),
        ("Retry", closed(retry)),
        ("Requeued", object(&[("requeued", whole())])),
    ]
}

fn orders() -> Shapes {
    let problem = optional(&[
        ("type", text()),
        ("title", text()),
        ("status", whole()),
        ("detail", text()),
        ("key", text()),
        ("line", whole()),
    ]);
    let prefix = optional(&[("ipv4Prefix", text()), ("ipv6Prefix", text())]);
    let problem = with_required(problem, &["type", "title", "status", "detail"]);
    vec![
        ("Whom", closed(optional(&[("host", or_null(&text()))]))),
        ("Paused", object(&[("paused", truth()), ("host_key", or_null(&text()))])),
        ("Draining", object(&[("state", one_of(&["draining"]))])),
        ("Nothing", closed(optional(&[]))),
        ("ReloadReport", object(&[("applied", list(&text())), ("needs_restart", list(&text()))])),
        ("Addresses", object(&[("prefixes", list(&prefix))])),
        ("Problem", problem),
    ]
}

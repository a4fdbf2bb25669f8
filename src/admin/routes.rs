//! The one table of routes: the router, the OpenAPI document and the refusals are made from it.

use super::auth::Access;
use super::events::NDJSON;
use super::metrics::PROMETHEUS;
use super::query::Parameter;
use super::router::{Answers, Call, Handled, Handler, Route, Takes, Verb};
use super::{
    about, actors, control, dashboard, events, exclusions, health, hosts, letters, metrics,
    openapi, seeds, status, urls, why,
};

const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";

const LIMIT: Parameter = Parameter::number("limit", "items at most: 100 unless given, 1 to 1000");
const CURSOR: Parameter = Parameter::text("cursor", "`next` of the answer before");
const URL: Parameter = Parameter::text("url", "an absolute http(s) URL").required();

/// A line with the usual: JSON, with the token, no parameters, no body.
const fn line(verb: Verb, path: &'static str, schema: &'static str, handler: Handler) -> Route {
    Route {
        verb,
        path,
        access: Access::Token,
        summary: "",
        query: &[],
        takes: &[],
        answers: Answers { status: 200, media: JSON, schema },
        handler,
    }
}

const fn get(path: &'static str, schema: &'static str, handler: Handler) -> Route {
    line(Verb::Get, path, schema, handler)
}

const fn post(path: &'static str, schema: &'static str, handler: Handler) -> Route {
    line(Verb::Post, path, schema, handler)
}

impl Route {
    const fn says(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn takes(self, takes: &'static [Takes]) -> Self {
        Self { takes, ..self }
    }

    const fn answers(self, status: u16, media: &'static str) -> Self {
        Self { answers: Answers { status, media, schema: self.answers.schema }, ..self }
    }

    const fn open(self) -> Self {
        Self { access: Access::Open, ..self }
    }
}

const fn json(schema: &'static str) -> Takes {
    Takes { media: JSON, schema }
}

/// All routes. What stands here is served and described, and nothing else.
pub(super) static ROUTES: &[Route] = &[
    get("/v1/status", "Status", |call| Box::pin(status::show(call)))
        .says("the whole node in one object"),
    get("/v1/hosts", "HostList", |call| Box::pin(hosts::list(call)))
        .says("hosts by state or domain")
        .query(&[
            Parameter::text("state", "ready, in_flight, waiting, parked or idle"),
            Parameter::text("domain", "a registered domain"),
            LIMIT,
            CURSOR,
        ]),
    get("/v1/hosts/{host_key}", "Host", |call| Box::pin(hosts::show(call)))
        .says("one host: its rules, clocks, failures and allowance"),
    line(Verb::Patch, "/v1/hosts/{host_key}", "Host", |call| Box::pin(hosts::change(call)))
        .says("what an operator sets for a host; null returns to the configuration")
        .takes(&[json("HostPatch")]),
    get("/v1/urls", "Url", |call| Box::pin(urls::show(call)))
        .says("one URL: where it stands")
        .query(&[URL]),
    get("/v1/why", "Why", |call| Box::pin(why::show(call)))
        .says("why a URL was, will be or will not be fetched")
        .query(&[Parameter::text("url", "any URL, known or not").required()]),
    post("/v1/seeds", "SeedsAnswer", |call| Box::pin(seeds::add(call)))
        .says("seeds in; answered once they are durable")
        .takes(&[
            json("Seeds"),
            Takes { media: seeds::FORMS[1], schema: "Seed" },
            Takes { media: seeds::FORMS[2], schema: "" },
        ]),
    post("/v1/pause", "Paused", |call| Box::pin(control::pause(call)))
        .says("grant nothing more, to anybody or to one host")
        .takes(&[json("Whom")]),
    post("/v1/resume", "Paused", |call| Box::pin(control::resume(call)))
        .says("grant again, to all or to one host")
        .takes(&[json("Whom")]),
    post("/v1/exclusions", "Exclusion", |call| Box::pin(exclusions::add(call)))
        .says("ask no more for what a rule covers, at once; answered once it is durable")
        .takes(&[json("NewExclusion")])
        .answers(201, JSON),
    get("/v1/exclusions", "ExclusionList", |call| Box::pin(exclusions::list(call)))
        .says("the exclusions in force")
        .query(&[LIMIT, CURSOR]),
    line(Verb::Delete, "/v1/exclusions/{id}", "Exclusion", |call| Box::pin(exclusions::lift(call)))
        .says("ask again for what an exclusion covered"),
    get("/v1/dead-letters", "LetterList", |call| Box::pin(letters::list(call)))
        .says("URLs that were given up")
        .query(&[LIMIT, CURSOR]),
    post("/v1/dead-letters/retry", "Requeued", |call| Box::pin(letters::retry(call)))
        .says("back into their queues: some URLs, those of a host, or all")
        .takes(&[json("Retry")]),
    get("/v1/events", "Event", |call| Box::pin(events::feed(call)))
        .says("what happened, one JSON object a line, from a cursor on")
        .query(&[
            Parameter::text("after", "`cursor` of the last line read; the oldest there is if not"),
            Parameter::number("limit", "lines at most: 100 unless given, 1 to 1000"),
            Parameter::number("wait", "seconds to wait for a line: 0 unless given, at most 60"),
        ])
        .answers(200, NDJSON),
    get("/v1/actors", "Actor", |call| Box::pin(actors::tree(call))).says("the tree of actors"),
    get("/v1/cluster", "Cluster", |call| Box::pin(actors::cluster(call)))
        .says("nodes and the shards they hold"),
    post("/v1/drain", "Draining", |call| Box::pin(control::drain(call)))
        .says("let what is in flight end, then stop")
        .takes(&[json("Nothing")])
        .answers(202, JSON),
    post("/v1/reload", "ReloadReport", |call| Box::pin(control::reload(call)))
        .says("read the configuration again")
        .takes(&[json("Nothing")]),
    get("/metrics", "", |call| Box::pin(metrics::scrape(call)))
        .says("all figures as Prometheus text")
        .answers(200, PROMETHEUS),
    get("/healthz", "Health", |call| Box::pin(health::alive(call)))
        .says("the process answers")
        .open(),
    get("/readyz", "Health", |call| Box::pin(health::ready(call)))
        .says("every shard is up and nothing fails")
        .open(),
    get("/openapi.json", "OpenApi", |call| Box::pin(described(call))).says("this description"),
    get("/", "", |call| Box::pin(dashboard::show(call))).says("the dashboard").answers(200, HTML),
    get("/about", "", |call| Box::pin(about::show(call)))
        .says("for those whose site was visited")
        .query(&[Parameter::text("host", "a host key or name, whose figures are shown")])
        .answers(200, HTML)
        .open(),
    get("/about/addresses.json", "Addresses", |call| Box::pin(about::addresses(call)))
        .says("where requests come from, where that is configured")
        .open(),
];

async fn described(call: Call) -> Handled {
    openapi::show(&call)
}

//! The words of every scheme and what they speak of: the place to change when the drafts move.
//! docs/wishes.md shows the same.

use super::Purpose::{self, AiInput, AiTrain, Search};

/// A purpose and the words that speak of it, the narrower before the broader: a broader word counts
/// only where no narrower one says anything, and of words side by side the one that refuses.
pub(super) type Category = (Purpose, &'static [&'static [&'static str]]);

/// Everything that machines do with text, in aipref-vocab 00 to 04. Sites still send them.
const BROAD: &[&str] = &["bots", "all", "tdm"];

/// Content-Usage: aipref-vocab 08 has `train-ai`, `ai-use` and `search`, each by itself. The other
/// words were in earlier drafts. A set for training serves models that generate and others.
pub(super) const CONTENT_USAGE: [Category; 3] = [
    (AiTrain, &[&["train-ai", "train-genai"], BROAD]),
    (AiInput, &[&["ai-use", "ai-output"], BROAD]),
    (Search, &[&["search"], BROAD]),
];

/// Content-Signal: its three signals. `use`, which tells how content may be shown, says nothing.
pub(super) const CONTENT_SIGNAL: [(&str, Purpose); 3] =
    [("ai-train", AiTrain), ("ai-input", AiInput), ("search", Search)];

/// What a reservation of text and data mining keeps back; indexes are none of it.
pub(super) const MINING: &[Purpose] = &[AiTrain, AiInput];

/// Directives of a page. Page records name images with their texts, which is what models of images
/// are trained on, so `noimageai` keeps them from training.
pub(super) const DIRECTIVES: [(&str, &[Purpose]); 2] =
    [("noai", &[AiTrain, AiInput]), ("noimageai", &[AiTrain])];

/// W-3: what is refused where something was left out.
pub(super) const USES: &[Purpose] = &[Search, AiTrain, AiInput];

/// R4: the directives that keep a page out of indexes.
pub(super) fn refuses_index(directive: &str) -> bool {
    matches!(directive, "noindex" | "none")
}

/// Product tokens of agents that are known for a use, and of the tokens that stand for it. A site
/// that refuses them a path is taken to refuse that use of it.
pub(super) const AGENTS: [(&str, &[Purpose]); 36] = [
    ("AI2Bot", &[AiTrain]),
    ("Ai2Bot-Dolma", &[AiTrain]),
    ("Amazonbot", &[AiTrain, AiInput]),
    ("anthropic-ai", &[AiTrain]),
    ("Applebot-Extended", &[AiTrain]),
    ("Bytespider", &[AiTrain]),
    ("CCBot", &[AiTrain]),
    ("ChatGPT-User", &[AiInput]),
    ("Claude-SearchBot", &[AiInput]),
    ("Claude-User", &[AiInput]),
    ("Claude-Web", &[AiTrain, AiInput]),
    ("ClaudeBot", &[AiTrain]),
    ("cohere-ai", &[AiInput]),
    ("cohere-training-data-crawler", &[AiTrain]),
    ("DeepSeekBot", &[AiTrain]),
    ("Diffbot", &[AiTrain]),
    ("DuckAssistBot", &[AiInput]),
    ("FacebookBot", &[AiTrain]),
    ("Google-CloudVertexBot", &[AiInput]),
    ("Google-Extended", &[AiTrain, AiInput]),
    ("GPTBot", &[AiTrain]),
    ("ImagesiftBot", &[AiTrain]),
    ("img2dataset", &[AiTrain]),
    ("meta-externalagent", &[AiTrain]),
    ("meta-externalfetcher", &[AiInput]),
    ("MistralAI-User", &[AiInput]),
    ("OAI-SearchBot", &[AiInput]),
    ("omgili", &[AiTrain]),
    ("omgilibot", &[AiTrain]),
    ("PanguBot", &[AiTrain]),
    ("Perplexity-User", &[AiInput]),
    ("PerplexityBot", &[AiInput]),
    ("Timpibot", &[AiTrain]),
    ("VelenPublicWebCrawler", &[AiTrain]),
    ("webzio-extended", &[AiTrain]),
    ("YouBot", &[AiInput]),
];

/// What an agent is known for; nothing for one that is not in the table.
pub(super) fn purposes_of(agent: &str) -> &'static [Purpose] {
    let known = AGENTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(agent));
    known.map_or(&[], |(_, purposes)| *purposes)
}

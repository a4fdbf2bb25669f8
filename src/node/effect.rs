//! What a configuration says and this version does not do yet: told, so that nobody relies on it.

use crate::config::{Allowance, Config};

/// One sentence for each key that is set and has no effect.
pub fn without_effect(config: &Config) -> Vec<String> {
    let recrawl = &config.recrawl;
    let usual = Config::default().recrawl.min_interval;
    let interval = "pages come back after `recrawl.max_interval`, however often they change";
    let class = "every page comes back after `recrawl.max_interval`, whatever its class";
    let all = "it holds for hosts, and this key for what many hosts share";
    let mut told = Vec::new();
    let mut tell = |key: &str, why: &str| {
        told.push(format!("`{key}` has no effect in this version: {why}"));
    };
    if recrawl.enabled && recrawl.min_interval != usual {
        tell("recrawl.min_interval", interval);
    }
    if recrawl.enabled && !recrawl.classes.is_empty() {
        tell("recrawl.class", class);
    }
    let politeness = config.politeness.for_everyone();
    let usual = Config::default().politeness.for_everyone().max_delay;
    if politeness.max_delay < politeness.min_delay && politeness.max_delay != usual {
        tell("politeness.max_delay", "`politeness.min_delay` is longer, and is what counts");
    }
    for (at, allowance) in config.politeness.allowances.iter().enumerate() {
        if allowance.max_delay.is_some_and(|max| allowance.min_delay.is_some_and(|min| max < min)) {
            let why = "its `min_delay` is longer, and is what counts";
            tell(&format!("politeness.allowance[{at}].max_delay"), why);
        }
        for key in shared(allowance) {
            tell(&format!("politeness.allowance[{at}].{key}"), all);
        }
    }
    told
}

/// Keys of an allowance that are obeyed for everyone only.
fn shared(allowance: &Allowance) -> impl Iterator<Item = &'static str> {
    let keys = [
        ("per_domain_min_delay", allowance.per_domain_min_delay.is_some()),
        ("per_address_min_delay", allowance.per_address_min_delay.is_some()),
        ("per_address_max_in_flight", allowance.per_address_max_in_flight.is_some()),
        ("per_address_exempt", allowance.per_address_exempt.is_some()),
        ("domain_daily_pages", allowance.domain_daily_pages.is_some()),
        ("host_max_urls", allowance.host_max_urls.is_some()),
        ("domain_max_urls", allowance.domain_max_urls.is_some()),
    ];
    keys.into_iter().filter_map(|(key, set)| set.then_some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_effect_is_told_and_nothing_else() {
        assert!(without_effect(&Config::default()).is_empty());
        let slow = Config::from_toml("politeness.min_delay = \"2m\"", "test").unwrap();
        assert!(without_effect(&slow).is_empty());
        let text = "[recrawl]\nmin_interval = \"2d\"\n[[recrawl.class]]\nname = \"news\"\n\
                    match = \"domain:a.org\"\n[[politeness.allowance]]\nhost = \"a.org\"\n\
                    min_delay = \"5s\"\nmax_delay = \"4s\"\nhost_max_urls = 5\n\
                    [politeness]\nmin_delay = \"9s\"\nmax_delay = \"8s\"\n";
        let told = without_effect(&Config::from_toml(text, "test").unwrap());
        let keys: Vec<_> = told.iter().filter_map(|line| line.split('`').nth(1)).collect();
        let expected = [
            "recrawl.min_interval",
            "recrawl.class",
            "politeness.max_delay",
            "politeness.allowance[0].max_delay",
            "politeness.allowance[0].host_max_urls",
        ];
        assert_eq!(keys, expected);
    }
}
